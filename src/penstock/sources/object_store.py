"""Stores of objects by the settings that Hadoop's connector for S3 has.

``s3a://`` is Hadoop's name for S3. Its endpoint, region and keys are said to Spark as settings
(``fs.s3a.…``, and ``fs.s3a.bucket.NAME.…`` for one bucket, which goes first); what Python reads and
writes beside Spark goes by the same. Without keys the usual places of Amazon's clients are asked:
variables, profiles, the role of the machine. Without region and endpoint it is Amazon's bucket, and
Amazon is asked for its region. Other stores are left to :mod:`pyarrow.fs`.

Keys are secret: they travel to the tasks with what is to be opened, and are in no message.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from pyarrow import fs

S3A = "fs.s3a."
"""What settings of the connector begin with."""
_S3 = ("s3a", "s3n", "s3")
_NAMES = {
    "access.key": "access_key",
    "secret.key": "secret_key",
    "session.token": "session_token",
    "endpoint.region": "region",
}
"""Settings of the connector, and what Arrow calls the same. Arrow has one folder of an endpoint for
each bucket, as with ``path.style.access``; without an endpoint Amazon's names are the same."""
_ENDPOINT = "endpoint"
_SSL = "connection.ssl.enabled"

Options: TypeAlias = tuple[tuple[str, str], ...]
"""Arrow's options for a store."""
Setting: TypeAlias = Callable[[str], str | None]
"""The value of a setting of the connector, None if it has none."""


def store_settings(addresses: Iterable[str], setting: Setting) -> dict[str, str]:
    """The settings of the connector that the stores of ``addresses`` are reached by."""
    found = {}
    for bucket in {_bucket(address) for address in addresses} - {None}:
        for name in (*_NAMES, _ENDPOINT, _SSL):
            for key in (f"{S3A}bucket.{bucket}.{name}", f"{S3A}{name}"):
                value = setting(key)
                if value:
                    found[key] = value
    return found


def store_options(address: str, setting: Setting) -> Options:
    """Arrow's options for the store of ``address``; none if it is not S3, or nothing is set."""
    bucket = _bucket(address)
    given = store_settings([address], setting)
    found = {}
    for name in (*_NAMES, _ENDPOINT, _SSL):
        value = given.get(f"{S3A}bucket.{bucket}.{name}", given.get(f"{S3A}{name}"))
        if value is not None:
            found[name] = value
    return tuple(sorted(_arrow(found).items()))


def open_store(
    address: str, options: Options = (), limits: Mapping[str, float] | None = None
) -> tuple[fs.FileSystem, str]:
    """Arrow's file system for ``address``, and the path in it. ``limits`` are options of S3 alone,
    in seconds."""
    scheme, _, rest = address.partition("://")
    if scheme in _S3 and (options or limits):
        given = dict(options)
        if "region" not in given and "endpoint_override" not in given:
            given |= _region(address)
        return fs.S3FileSystem(**given, **(limits or {})), rest.rstrip("/")
    system, path = fs.FileSystem.from_uri(re.sub(r"^s3[an]://", "s3://", address))
    return system, path.rstrip("/")


def _region(address: str) -> dict[str, str]:
    """Where Amazon has the bucket of ``address``, as an option; none if it cannot be found out."""
    try:
        return {"region": fs.resolve_s3_region(_bucket(address))}
    except (OSError, ValueError):
        return {}


def _bucket(address: str) -> str | None:
    scheme, _, rest = address.partition("://")
    return rest.partition("/")[0] if scheme in _S3 else None


def _arrow(found: Mapping[str, str]) -> dict[str, str]:
    options = {_NAMES[name]: value for name, value in found.items() if name in _NAMES}
    endpoint = found.get(_ENDPOINT, "")
    if endpoint:
        scheme, is_url, rest = endpoint.partition("://")
        options["endpoint_override"] = rest.rstrip("/") if is_url else endpoint
        options["scheme"] = scheme if is_url else "https"
    if found.get(_SSL, "").lower() == "false" and "://" not in endpoint:
        options["scheme"] = "http"
    return options
