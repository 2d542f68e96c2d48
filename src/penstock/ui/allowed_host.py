"""Whether a request may come by this ``Host``: the guard against DNS rebinding.

A page elsewhere can make a browser ask this machine by giving its own name our address. Its
requests then carry that name. So a name is served only if it is ``localhost`` or the one that the
server was told to listen on; addresses in digits cannot be rebound and are always fine.
"""

from __future__ import annotations

import ipaddress


def host_is_allowed(header: str | None, told: str) -> bool:
    """``header`` is the Host of a request, ``told`` the host that the server was given."""
    if not header:
        return False
    name = _without_port(header).lower()
    if name in ("localhost", told.lower()):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _without_port(header: str) -> str:
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.rpartition(":")[0] if header.count(":") == 1 else header
