"""Landlock with no rule: the calling thread opens no file, binds and connects no TCP port, signals no other process.

It holds even if the system-call filter had a gap. Descriptors that are open already stay usable."""

from __future__ import annotations

import ctypes
import struct

CREATE, RESTRICT = 444, 446  # system calls, the same on every architecture
VERSION_QUERY = 1
FILES_BY_VERSION = {1: 13, 2: 14, 3: 15, 4: 15}  # how many kinds of file access a version knows; 16 from the fifth on
NETWORK_FROM, SCOPES_FROM = 4, 6


def version() -> int:
    """The newest version the system knows; 0 where there is none."""
    libc = ctypes.CDLL(None, use_errno=True)
    return max(0, int(libc.syscall(CREATE, None, 0, VERSION_QUERY)))


def ruleset(known: int) -> bytes:
    """struct landlock_ruleset_attr: everything that this version can forbid."""
    files = (1 << FILES_BY_VERSION.get(known, 16)) - 1
    fields = [files]
    if known >= NETWORK_FROM:
        fields.append(0b11)  # bind, connect
    if known >= SCOPES_FROM:
        fields.append(0b11)  # abstract sockets, signals
    return struct.pack(f"={len(fields)}Q", *fields)


def restrict() -> bool:
    """Forbid everything to this thread; whether the system did. no_new_privs must be set."""
    known = version()
    if not known:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    attributes = ruleset(known)
    made = int(libc.syscall(CREATE, attributes, len(attributes), 0))
    if made < 0:
        return False
    done = libc.syscall(RESTRICT, made, 0) == 0
    libc.close(made)
    return bool(done)
