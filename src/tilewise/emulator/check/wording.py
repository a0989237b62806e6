"""Messages and hints of findings."""

from __future__ import annotations

from tilewise.emulator.check.atomic_update import atomic_update
from tilewise.emulator.check.binding import Bound
from tilewise.emulator.check.index_names import index_at, size_name
from tilewise.emulator.machine.findings import STALE, Finding, Kind, Touch
from tilewise.system.quantities import coordinates


def cell(array: str, index: tuple[int, ...] | None) -> str:
    return array if index is None else array + "".join(f"[{i}]" for i in index)


def thread_of(touch: Touch) -> str:
    return f"thread {coordinates(touch.thread)} of block {coordinates(touch.block)}"


def describe(finding: Finding, bound: Bound) -> None:
    """Fill in `message` and `hint`."""
    first = finding.touches[0] if finding.touches else None
    array, verb = finding.array, _verb(finding.access)
    kind = finding.kind
    if kind is Kind.OUT_OF_BOUNDS and first is not None:
        finding.message = f"{_times(finding)} outside {array}: {thread_of(first)} {verb} {cell(array, first.requested)}"
        finding.message += f" in phase {first.phase}" if finding.access != "local" else ""
        finding.hint = _guard_hint(finding, bound)
    elif kind is Kind.SILENT_OVERRUN and first is not None:
        finding.message = (
            f"{_times(finding)} out of its row but inside {array}: {thread_of(first)} asks for "
            f"{cell(array, first.requested)} and silently gets {cell(array, first.reached)}, in phase {first.phase}"
        )
        finding.hint = _guard_hint(finding, bound)
    elif kind is Kind.RACE and first is not None:
        finding.message = _race(finding, first)
        finding.hint = _race_hint(finding)
    elif kind is Kind.DIVERGENT_BARRIER and first is not None and finding.scope:
        finding.message = (
            f"{finding.count} threads never reach this barrier of the whole grid while others wait at it: "
            f"first {thread_of(first)}"
        )
        finding.hint = "move the barrier out of the branch, so that every thread of every block passes it"
    elif kind is Kind.DIVERGENT_BARRIER and first is not None:
        finding.message = (
            f"{finding.count} threads never reach this __syncthreads() while others of their block wait at it: "
            f"first {thread_of(first)}"
        )
        finding.hint = "move the barrier out of the branch, so that every thread of the block passes it"
    elif kind is Kind.UNINITIALISED_READ and first is not None:
        place = cell(array, first.requested)
        finding.message = f"{_times(finding)} of {place} before anything was written to it: {thread_of(first)}"
        if finding.hazard == STALE:
            finding.message = f"{_times(finding)} of {place}, which keeps an earlier phase's value: {thread_of(first)}"
        finding.hint = _uninitialised_hint(finding, bound)
    elif kind is Kind.INDEX_OVERFLOW and first is not None and first.requested and first.reached:
        finding.message = (
            f"a 32-bit product that feeds an index overflows {finding.count} times: {first.requested[0]} wraps to "
            f"{first.reached[0]}, first for {thread_of(first)}"
        )
        finding.hint = "compute the index in size_t or long long: cast one factor before multiplying"
    elif kind is Kind.UNCOVERED:
        first_cell = cell(array, first.requested if first else None)
        finding.message = f"{finding.count} cells of {array} are never written, first {first_cell}"
    elif kind is Kind.WRONG_PRODUCT:
        finding.message = f"{finding.count} cells of {array} are not the product: {finding.evidence}"
        finding.hint = finding.hint or (
            "check which row and column each factor is read from, and over which range the sum runs"
        )
    elif kind is Kind.ASSERTION and first is not None:
        finding.message = f"assert fails for {finding.count} threads, first {thread_of(first)}"
    elif kind is Kind.NOT_DECIDABLE:
        finding.message = (
            f"whether {array} stays in its row here is not decidable: no leading dimension took part in the index"
        )


def _times(finding: Finding) -> str:
    noun = {
        "load": "load", "store": "store", "read": "read", "write": "write", "shared": "access",
        "local": "access", "atomic": "atomic operation", "register": "read",
    }.get(finding.access, "access")  # fmt: skip
    plural = noun + ("es" if noun.endswith("s") else "s") if finding.count != 1 else noun
    return f"{finding.count} {plural}"


def _verb(access: str) -> str:
    return {"store": "stores to", "write": "writes", "load": "loads", "read": "reads"}.get(access, "touches")


def _guard_hint(finding: Finding, bound: Bound) -> str:
    touch = finding.touches[0]
    if finding.array in bound.dynamic:
        size = bound.dynamic[finding.array]
        return (
            f"{finding.array} is extern __shared__ and has {size} bytes in this launch: give the bytes it needs as the "
            "third launch argument, <<<grid, block, bytes>>>"
        )
    buffer = bound.buffers.get(finding.array)
    if buffer is None or buffer.matrix is None or touch.requested is None or len(touch.requested) != 2:
        negative = all(t.requested is not None and t.requested[0] < 0 for t in finding.touches)
        return "keep the subscript at 0 or above" if negative else "keep the subscript below the array's length"
    rows, cols = buffer.matrix.rows, buffer.matrix.cols
    over_row = any(t.requested is not None and not 0 <= t.requested[0] < rows for t in finding.touches)
    over_col = any(t.requested is not None and not 0 <= t.requested[1] < cols for t in finding.touches)
    if finding.kind is Kind.SILENT_OVERRUN and not over_row and not over_col:
        return f"{finding.array} has rows of {buffer.matrix.pitch} elements; this index steps by another matrix's row"
    index = index_at(finding.place, {n.split(".")[-1] for n in bound.symbols} | set(bound.symbols))
    row, column = (index.row, index.column) if index is not None else ("row", "column")
    below = [size_name(bound, rows), size_name(bound, cols, index.stride if index is not None else "")]
    parts = ([f"{row} < {below[0]}"] if over_row else []) + ([f"{column} < {below[1]}"] if over_col else [])
    inside = " && ".join(parts) or "inside"
    if finding.access == "store":
        return f"{finding.array} is {rows} x {cols}: store only where {inside}"
    return f"{finding.array} is {rows} x {cols}: load only where {inside}, and fill with 0 elsewhere"


def _race(finding: Finding, first: Touch) -> str:
    action = {
        "RAW": "reads what another thread writes",
        "WAR": "overwrites what another thread still reads",
        "WAW": "writes where another thread writes",
    }[finding.hazard]
    other = ""
    if first.other is not None:
        other = f" (the other is thread {coordinates(first.other[1])} of block {coordinates(first.other[0])}"
        line = finding.other_place.line if finding.other_place else 0
        other += f", line {line})" if line else ")"
    elif finding.other_place is not None:
        other = f" (line {finding.other_place.line})"
    between = "with no barrier between them" if finding.scope == "within a block" else "in another block"
    return (
        f"{finding.hazard} race {finding.scope}, {finding.count} times: {thread_of(first)} {action}, {between}: "
        f"{cell(finding.array, first.reached)}{other}"
    )


def _race_hint(finding: Finding) -> str:
    atomic = atomic_update(finding)
    if atomic:
        return f"several threads update this cell, and a barrier does not order them: {atomic}"
    if finding.scope == "between blocks":
        return "let only one block touch each cell, or use atomic operations: blocks run in no order"
    if finding.access in ("load", "store"):
        return "let only one thread of the block touch each cell, or put __syncthreads() between them"
    other = finding.other_place.line if finding.other_place is not None else 0
    if finding.in_warp:
        return _warp_hint(finding, other)
    if finding.hazard == "RAW" and other > finding.line:
        return (
            f"put __syncthreads() after line {other} and before line {finding.line} reads what it wrote "
            "(in a loop: at the end of its body)"
        )
    if finding.hazard == "RAW":
        where = f", between line {other} and line {finding.line}" if other and other < finding.line else ""
        return f"put __syncthreads() after the tile is loaded and before it is used{where}"
    if finding.hazard == "WAR" and other == finding.line and finding.place is not None:
        return "this line reads what others write: read into a variable, __syncthreads(), and store after it"
    if finding.hazard == "WAR":
        after = f": after the loop of line {other}" if other > finding.line else ""
        return f"put __syncthreads() after the tile is used and before the next one is loaded over it{after}"
    if other and other != finding.line and not finding.in_warp:
        first, second = sorted((other, finding.line))
        return f"put __syncthreads() between line {first} and line {second}, which write the same cells"
    return "let only one thread write each cell between two barriers"


def _warp_hint(finding: Finding, other: int) -> str:
    if finding.hazard == "RAW" and other > finding.line:
        return (
            f"put __syncthreads(), or __syncwarp() if one warp alone comes there, after line {other} and before "
            f"line {finding.line} reads what it wrote (in a loop: at the end of its body)"
        )
    why = "one warp alone comes here, and its threads do not run in step"
    if finding.hazard == "WAR" and other == finding.line:
        return f"{why}: read into a variable, __syncwarp(), and store after it"
    return f"{why}: put __syncwarp() between line {min(other, finding.line)} and line {max(other, finding.line)}"


def _uninitialised_hint(finding: Finding, bound: Bound) -> str:
    inputs = {bound.matrices[role].name for role in "MN"} if bound.matrices is not None else set()
    if finding.access == "load" and finding.array in inputs:
        return f"copy it to the card before the launch: cudaMemcpy(…, cudaMemcpyHostToDevice) for {finding.array}"
    if finding.access == "load":
        return "clear it first, or store with = instead of +="
    if finding.access == "register":
        return f"give {finding.array} a first value"
    if finding.hazard == STALE and finding.other_place is not None:
        return f"store 0 where the guard of line {finding.other_place.line} is false: every phase fills the whole tile"
    return "every thread of the block must load or fill its part of the tile, whatever its own guard says"
