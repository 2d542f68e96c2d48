"""The path productivity table of a plan as text (figure 8 of JAQPOT)."""

from __future__ import annotations

from penstock.overload.path_model import PathModel


def path_table(model: PathModel) -> str:
    """One line for each path, the most productive first, and the saturation of the plan."""
    head = ("path", "half-way joins", "probes/s", "results/s", "results/probe")
    lines = [head]
    for path in sorted(model.paths, key=lambda p: -p.productivity):
        chain = ", ".join(map(str, path.half_way_joins))
        lines.append(
            (
                path.stream,
                chain,
                f"{path.resources:,.2f}",
                f"{path.throughput:,.2f}",
                f"{path.productivity:.3g}",
            )
        )
    total = f"{model.saturation_resources:,.2f}", f"{model.saturation_throughput:,.2f}"
    lines.append(("all", "", *total, ""))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if position < 2 else cell.rjust(width)
            for position, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
