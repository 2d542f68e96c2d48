"""The secret of this process by which values are hashed: no answer depends on it, and nobody can
send values that all go to one place of a table."""

from __future__ import annotations

import secrets

import numpy as np

SECRET = np.frombuffer(secrets.token_bytes(16), np.uint64).copy()
