"""One picture of the table: CPU seconds of every peer on every case, on a logarithmic axis.

A panel for each case; in it a bar for each line, Penstock's in one colour, other streaming engines
in a second, offline ones in a third. What did not end is a hatched bar up to where it was stopped,
or its name alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock_studies.peers.peers_bench import Line

COLOURS = {"penstock": "#1b6ca8", "streaming": "#c9782b", "offline": "#9a9a9a"}
_LEAST_CPU = 0.01
_ACROSS = 3
"""Panels beside each other."""


def plot(lines: Sequence[Line], file: Path) -> None:
    """Draw ``lines`` into ``file``, in the format of its suffix."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.patches import Patch

    names = list(dict.fromkeys(line.case.name for line in lines))
    labels = list(dict.fromkeys(_label(line) for line in lines))
    across = min(_ACROSS, len(names))
    down = -(-len(names) // across)
    figure, axes = pyplot.subplots(
        down,
        across,
        figsize=(2.2 + 2.6 * across, 0.6 + down * (0.8 + 0.2 * len(labels))),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    most = max((o.cpu for line in lines for o in line.rounds), default=1.0)
    for panel in axes.flat[len(names) :]:
        panel.set_visible(False)
    for panel, name in zip(axes.flat, names, strict=False):
        panel.set_xscale("log")
        for line in lines:
            if line.case.name == name:
                _draw(panel, labels.index(_label(line)), line)
        panel.set_xlim(_LEAST_CPU, 20 * max(most, 1.0))
        panel.set_title(name)
        panel.set_xlabel("CPU seconds")
        panel.grid(axis="x", alpha=0.3)
        panel.set_axisbelow(True)
        for side in ("top", "right"):
            panel.spines[side].set_visible(False)
    axes[0][0].set_yticks(range(len(labels)), labels)
    axes[0][0].set_ylim(len(labels) - 0.5, -0.5)
    kinds = [Patch(color=colour, label=kind) for kind, colour in COLOURS.items()]
    kinds.append(Patch(facecolor="white", edgecolor="black", hatch="///", label="stopped"))
    figure.legend(handles=kinds, loc="outside lower center", ncols=len(kinds), frameon=False)
    figure.savefig(file, dpi=150)
    pyplot.close(figure)


def _label(line: Line) -> str:
    return f"{line.peer.title}, {line.variant}" if len(line.peer.variants) > 1 else line.peer.title


def _draw(panel: Any, at: int, line: Line) -> None:
    stopped = line.ended
    cpu = max(_LEAST_CPU, line.cpu if stopped is None else stopped.cpu)
    colour = COLOURS[line.peer.kind]
    if stopped is None:
        panel.barh(at, cpu, color=colour)
        text = f"{cpu:.2g}" if cpu < 100 else f"{cpu:.0f}"
        text += " ≠" if line.wrong else ""
    else:
        if cpu > _LEAST_CPU:
            panel.barh(at, cpu, color="white", edgecolor=colour, hatch="///")
        text = stopped.status
    panel.text(cpu * 1.15, at, text, va="center", fontsize=7)
