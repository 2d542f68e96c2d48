"""What every peer script does besides joining: takes an order, rehearses, joins, hands over.

A script is run by the interpreter of its peer, which knows nothing of Penstock, and calls
:func:`serve` with its one function ``join(order)``. The order comes as one line of JSON on stdin:

- ``streams``: for each stream its join ``columns`` and its ``file`` (or folder), in the order of
  the query; every stream also has ``id`` and ``ts``, and its rows are in the order of ``ts``;
- ``pairs``: the equalities, as (stream, other stream, column);
- ``window``: no two tuples of a result are farther apart in ``ts``;
- ``sequence``: the streams in the order in which to join them;
- ``peer`` and ``variant``, ``cores``, ``memory`` in bytes, ``query``, ``plan``, and ``work``, a
  folder to write to.

``join`` returns the number of ``results``, the ``sums`` of the ids by stream, and, if the peer
knows, ``state_bytes`` or ``state_rows``.

The same join runs twice in one process: first on a small input, so that what a process does once
(loading, compiling, starting a JVM) is over, then on the real one. Before and after the real one
the script waits for a line on stdin, while whoever watches reads the clocks.
"""

import json
import os
import sys
import traceback


def serve(join, rehearse=None):
    """Carry out the order on stdin with ``join``; ``rehearse`` may do more than that."""
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # What a peer prints is not an answer.
    orders = json.loads(sys.stdin.readline())

    def say(**values):
        lines.write(json.dumps(values) + "\n")
        lines.flush()

    try:
        (rehearse or join)(orders["rehearsal"])
        say(at="ready")
        sys.stdin.readline()
        told = join(orders["job"])
        say(at="done")
        sys.stdin.readline()
        say(told=told)
    except Exception as error:
        traceback.print_exc()
        say(failed=f"{type(error).__name__}: {' '.join(str(error).split())}")
    sys.stdin.readline()  # Ended from outside, as some peers leave threads behind.


def conditions(order, stream, others):
    """The equalities between ``stream`` and ``others``, as (other, column)."""
    found = []
    for one, two, column in order["pairs"]:
        if two == stream and one in others:
            found.append((one, column))
        elif one == stream and two in others:
            found.append((two, column))
    return found


def columns(order, stream):
    """All columns of ``stream``."""
    return ["id", "ts", *order["streams"][stream]["columns"]]


def add_up(order, batches):
    """The number of results and the sums of ids, of Arrow batches with a column per stream.

    The columns are in the order of the query.
    """
    import pyarrow.compute as pc

    results, sums = 0, dict.fromkeys(order["streams"], 0)
    for batch in batches:
        results += batch.num_rows
        for number, stream in enumerate(sums):
            sums[stream] += pc.sum(batch.column(number)).as_py() or 0
    return {"results": results, "sums": sums}
