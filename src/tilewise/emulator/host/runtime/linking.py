"""Addresses of the functions that compiled code calls: the runtime's, and those of the C library."""

from __future__ import annotations

import contextlib
import ctypes
from functools import lru_cache
from typing import Any

from tilewise.emulator.host.lower.call import PREFIX
from tilewise.emulator.host.lower.module import runtime_signature
from tilewise.emulator.host.runtime.sealing import unsealed
from tilewise.emulator.host.runtime.session import FUNCTIONS, Session
from tilewise.errors import EngineError


def symbols_of(s: Session) -> dict[str, int]:
    """Addresses of the external functions of the last module."""
    known: dict[str, int] = s.state.setdefault("symbols", {})
    out: dict[str, int] = {}
    named = {e: d for e, d in s.program.externals.items() if not e.startswith("llvm.")}
    with contextlib.ExitStack() as stack:
        if any(external not in known for external in named):
            stack.enter_context(unsealed())
        for external, declaration in named.items():
            if external not in known:
                known[external] = _address(s, external, declaration)
            out[external] = known[external]
    return out


def _address(s: Session, external: str, declaration: Any) -> int:
    name = external.removeprefix(PREFIX)
    result, parameters = runtime_signature(external, declaration)
    if name in FUNCTIONS:
        return s.address_of(name, result, parameters)
    if "ptr" in (result, *parameters):  # the C library would access it unchecked
        raise EngineError(f"{name} is declared in a known header and not modelled")
    return library_address(name)


def library_address(name: str) -> int:
    """The address of a function of the C library that takes and returns numbers."""
    for library in _libraries():
        try:
            return int(ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0)
        except AttributeError:
            continue
    raise EngineError(f"{name} is declared in a known header and not modelled")


@lru_cache(maxsize=1)
def _libraries() -> tuple[ctypes.CDLL, ...]:
    found = [ctypes.CDLL(None)]
    for library in ("libm.so.6", "libm.dylib"):
        with contextlib.suppress(OSError):
            found.append(ctypes.CDLL(library))
    return tuple(found)
