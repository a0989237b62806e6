"""What is told of two threads that race in shared memory."""

from __future__ import annotations

from tilewise.engines.simt.host.runtime.session import Session, runtime
from tilewise.engines.simt.machine.findings import Kind

WAYS = (("reads", "wrote"), ("writes", "wrote"), ("writes", "read"))


@runtime("rt_race")
def race(s: Session, address: int, line: int, other: int, who: int, kind: int) -> None:
    block = s.memory.find(address)
    name = block.name if block is not None and block.name else "shared memory"
    at = f" at byte {address - block.address}" if block is not None else ""
    mine, theirs = WAYS[kind]
    geometry = s.cuda.astray.geometry
    x, y = (geometry.block[0], geometry.block[1]) if geometry is not None else (1024, 1)
    them = "another thread" if who < 0 else f"thread ({who // x % y}, {who % x})"
    pairs: dict[tuple[str, frozenset[int]], int] = s.state.setdefault("races", {})
    line_told = pairs.setdefault((name, frozenset((line, other))), line)  # either may come first: told once
    verbs = theirs.replace("wrote", "write"), mine[:-1]
    s.faults.add(
        Kind.RACE, line_told,
        f"a thread {mine} {name}{at}, which {them} {theirs} at line {other} with no barrier between them",
        f"__syncthreads() between the {verbs[0]} at line {other} and the {verbs[1]} at line {line}",
        array=name, access="kernel", other_line=other,
    )  # fmt: skip
