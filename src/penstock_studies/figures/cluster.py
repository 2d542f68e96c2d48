"""What a cluster would carry, by :mod:`penstock_studies.scale.cluster`: nobody has run it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock_studies.figures.judgement import as_float, judge
from penstock_studies.figures.scale import BATCH, cell_points, window_points
from penstock_studies.lab.chart import Chart, Panel, Series, series_by
from penstock_studies.lab.experiment import Cell, Experiment, Point, Rows, Scale, Verdict
from penstock_studies.scale.cell_query import QUERIES
from penstock_studies.scale.cells_point import measure_engine
from penstock_studies.scale.cluster import Cluster, capacity, cpu, rows_held
from penstock_studies.scale.demand import demands_of, engine_window, growth_of
from penstock_studies.scale.power_law import exponent

CLUSTER = Cluster()


def engine_points(scale: Scale) -> list[Point]:
    few = scale == "quick"
    return [
        Point(
            measure_engine,
            {
                "query": name,
                "window": 2_000 if query.is_theta else 100_000,
                "push": 1_000 if query.is_theta else BATCH,
                "tuples": 10_000 if query.is_theta else 300_000 if few else 2_000_000,
            },
            f"{name}, engine",
            2.0 if few else 4.0,
        )
        for name, query in QUERIES.items()
    ]


def cluster_points(scale: Scale) -> list[Point]:
    return [*window_points(scale), *cell_points(scale), *engine_points(scale)]


def carried(rows: Rows, cluster: Cluster) -> list[dict[str, Cell]]:
    """One line for each query: what ``cluster`` would carry, by the model."""
    growth = growth_of(rows, engine_window(rows))
    lines: list[dict[str, Cell]] = []
    for name, demand in demands_of(rows, cluster.workers).items():
        found = capacity(cluster, demand, growth)
        held = rows_held(cluster, demand, found.tuples)
        lines.append(
            {
                "query": name,
                "machines": cluster.machines,
                "tuples/s": found.tuples,
                "binds": found.binds,
                "by CPU": found.cpu,
                "by network": found.network,
                "by memory": found.memory,
                "rows that fit": found.memory * cluster.window,
                "rows of a stream in the fullest cell": held,
                "copies": demand.copies,
                "skew": demand.share * cluster.workers / demand.copies,
            }
        )
    return lines


def sizes(rows: Rows, cluster: Cluster) -> list[Cluster]:
    """The cluster with as many machines as there are measured numbers of cells for."""
    cells = sorted({int(as_float(row["cells"])) for row in rows if "cells" in row})
    wanted = [each // cluster.cores for each in cells if each % cluster.cores == 0]
    return [replace(cluster, machines=each) for each in wanted if 1 <= each <= cluster.machines]


def cluster_chart(rows: Rows) -> Chart:
    lines = [line for size in sizes(rows, CLUSTER) for line in carried(rows, size)]
    own = [line for line in lines if line["machines"] == CLUSTER.machines]
    names = tuple(str(line["query"]) for line in own)
    growth = growth_of(rows, engine_window(rows))
    demands = demands_of(rows, CLUSTER.workers)
    busy = {
        name: cpu(CLUSTER, demand, growth, capacity(CLUSTER, demand, growth).cpu)
        for name, demand in demands.items()
    }

    def bars(title: str, label: str, values: dict[str, list[float]], log: bool) -> Panel:
        places = tuple(map(float, range(len(names))))
        found = tuple(Series(name, places, tuple(each)) for name, each in values.items())
        return Panel(title, "", label, found, kind="bars", log_y=log, categories=names)

    def panel(title: str, label: str, y: str) -> Panel:
        found = series_by(lines, "query", "machines", y)
        return Panel(title, "machines", label, found, log_x=True, log_y=True)

    return Chart(
        (
            (
                panel("(a) would be carried", "tuples/s", "tuples/s"),
                panel("(b) windows that would fit", "rows of all streams", "rows that fit"),
            ),
            (
                bars(
                    f"(c) {CLUSTER.machines} machines: what each allows",
                    "tuples/s",
                    {
                        n: [as_float(e[f"by {n}"]) for e in own]
                        for n in ("CPU", "network", "memory")
                    },
                    True,
                ),
                bars(
                    "(d) CPU of the busiest core",
                    "% of what may be used",
                    {
                        part: [100 * busy[name][part] / CLUSTER.busy for name in names]
                        for part in ("reading", "packing", "copies", "engine")
                    },
                    False,
                ),
            ),
        )
    )


def cluster_table(rows: Rows) -> list[dict[str, Cell]]:
    return carried(rows, CLUSTER)


def cluster_verdict(rows: Rows) -> Verdict:
    own = carried(rows, CLUSTER)
    smallest = {
        str(line["query"]): line
        for size in sizes(rows, CLUSTER)[:1]
        for line in carried(rows, size)
    }
    checks, words = [], []
    for line in own:
        name = str(line["query"])
        few = smallest[name]
        grown = exponent(
            [as_float(few["machines"]), as_float(line["machines"])],
            [as_float(few["tuples/s"]), as_float(line["tuples/s"])],
        )
        if QUERIES[name].zipf is None:
            checks.append(grown >= 1 / QUERIES[name].packing - 0.1)
        words.append(
            f"{name} {as_float(line['tuples/s']) / 1e6:.3g} million/s ({line['binds']} binds, "
            f"as machines^{grown:.2f})"
        )
    return judge(checks, f"extrapolated, not measured: {', '.join(words)}")


EXPERIMENTS: Sequence[Experiment] = (
    Experiment(
        name="scale-cluster",
        paper="Scale",
        figure="cluster",
        title="what 100 machines would carry",
        claim="No paper has this; what one hopes for is throughput in proportion to the machines "
        "with one key, and to the power 1/τ of them otherwise.",
        setting=f"A model, not a measurement (`penstock experiment cluster` has its options): "
        f"{CLUSTER.machines} machines with {CLUSTER.cores} cores, {CLUSTER.gibibytes:g} GiB and "
        f"{CLUSTER.gigabits:g} Gbit/s, one cell for each core, windows of {CLUSTER.window:g} s, a "
        f"micro-batch every {CLUSTER.trigger:g} s. Measured on one machine: what a tuple costs an "
        "engine by window, Spark, routing and packing; copies and skew on so many cells; bytes. "
        f"Assumed: CPU and links are used to {100 * CLUSTER.busy:.0f} %, memory to "
        f"{100 * CLUSTER.memory_share:.0f} %, a byte of a copy costs {CLUSTER.byte_ns:g} ns.",
        points=cluster_points,
        chart=cluster_chart,
        verdict=cluster_verdict,
        table=cluster_table,
    ),
)
