"""How often the cells together read what there is: the price of having no shuffle.

A cell reads the files and offsets of a batch itself and keeps its own rows. Of a source whose
folders tell which cells rows go to, it reads its own files, and statistics of the others; of any
other source, everything. So what is read of such a source is multiplied by the number of cells.
Decoding is cheaper than sending by some factor, not by any: with many cells and wide rows the other
lane, which sends each row once, is the better one.
"""

from __future__ import annotations

from penstock.sources.file_source import FileSource
from penstock.spark.data_source.lane import Lane


def read_by_cells(lane: Lane) -> list[str]:
    """What each cell reads of the streams, in lines; none if there is one cell."""
    cells = lane.placement.cells
    if cells == 1:
        return []
    cut: dict[str, list[str]] = {}
    whole = []
    for name in lane.moving:
        source, alias = lane.sources[name], lane.streams[name].alias
        needed = lane.placement.placed_by(alias)
        folders = source.folder_columns if isinstance(source, FileSource) else frozenset()
        if needed and needed <= folders:
            cut.setdefault(", ".join(sorted(needed)), []).append(name)
        else:
            whole.append(name)
    lines = [
        f"each cell reads its own files of {', '.join(names)}, by folders of {columns}"
        for columns, names in cut.items()
    ]
    if whole:
        lines.append(f"each cell reads all of {', '.join(whole)}: {cells} times what there is")
    return lines
