"""Whether a request may come by this ``Host``: the guard against DNS rebinding.

A page elsewhere can make a browser ask this machine by giving its own name our address. Its
requests then carry that name. So a name is served only if it is ``localhost`` or the one that the
server was told to listen on; addresses in digits cannot be rebound and are always fine.
"""

from __future__ import annotations

import ipaddress
import re

_HOST = re.compile(r"(?:\[(?P<six>[0-9a-f:.]+)\]|(?P<name>[^:@/?#\[\]\s]+))(?::[0-9]{1,5})?")
"""A host and perhaps a port, in small letters, and nothing else: no user, no path."""


def host_is_allowed(header: str | None, told: str) -> bool:
    """``header`` is the Host of a request, ``told`` the host that the server was given."""
    found = _HOST.fullmatch((header or "").lower())
    if found is None:
        return False
    name = found["six"] or found["name"]
    if found["name"] and name in ("localhost", told.lower()):
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return (address.version == 6) == (found["six"] is not None)
