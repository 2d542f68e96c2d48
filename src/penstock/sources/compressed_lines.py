"""Files of lines that are compressed, as their names say.

Spark reads such files by the same names. Those that only Java's libraries read are refused: their
bytes would be lines that cannot be read.
"""

from __future__ import annotations

import pyarrow as pa

from penstock.errors import InputError

_CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
"""Names of Arrow, by how names of files end."""
_OF_HADOOP = (".deflate", ".lz4", ".snappy", ".lzo")
"""Formats of Hadoop's own, which Arrow does not read."""


def is_compressed(path: str) -> bool:
    """Whether the name says that the file is compressed in a way that is read here."""
    return path.endswith(tuple(_CODECS))


def plain_lines(file: pa.NativeFile, path: str) -> pa.NativeFile:
    """``file``, or what is compressed in it."""
    if path.endswith(_OF_HADOOP):
        raise InputError(
            f"{path} is compressed in a way that only Spark reads; write it with one of "
            f'{", ".join(_CODECS)}, or let Spark read it (lane = "dataframes")'
        )
    if not is_compressed(path):
        return file
    codec = _CODECS[path[path.rindex(".") :]]
    with pa.CompressedInputStream(file, codec) as stream:
        return pa.BufferReader(stream.read_buffer())
