"""Variants of a kernel's text without a boundary check or a barrier.

The candidates are found in the text and in a run of it: a check guards lines that load from M or N or store to P. The
removed text becomes a comment on its line, so line numbers agree between a kernel and its variants.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace

from tilewise.emulator.machine.events import EventKind
from tilewise.teaching.trace import TraceData

CHECK, BARRIER = "check", "barrier"
MOST = 6  # drops of one kernel
_BARRIER = re.compile(r"__syncthreads\s*\(\s*\)\s*;")
_CHOICE = re.compile(r"=\s*(?P<condition>[^=;?]*<[^;?]*)\?")


@dataclass(frozen=True)
class Drop:
    """A removable check or barrier: the text from `first` to `last` (columns, from 0) of a line (from 1)."""

    name: str  # check-M, check-N, check-P, barrier-1, barrier-2; check@12, barrier@9 if that is ambiguous
    line: int
    first: int
    last: int
    instead: str = ""

    @property
    def kind(self) -> str:
        return CHECK if self.name.startswith(CHECK) else BARRIER


def drops_of(trace: TraceData) -> tuple[Drop, ...]:
    """The boundary checks and the barriers of the traced kernel."""
    lines = trace.source.split("\n")
    here = _body(lines, trace.run.entry)
    roles = _roles_by_line(trace)
    checks = [d for number in here for d in _checks(lines, number, here, roles)]
    found = [
        Drop(f"{BARRIER}@{number}", number, *match.span(), ";" if _is_branch(lines, number, match.start()) else "")
        for number in here
        for match in _BARRIER.finditer(_code(lines[number - 1]))
    ]
    if len(found) == 2:
        found = [replace(d, name=f"{BARRIER}-{i}") for i, d in enumerate(found, 1)]
    return tuple([*_unique_names(checks), *found][:MOST])


def _body(lines: list[str], entry: str) -> range:
    """The lines of the kernel, from 1: from its name to the brace that closes it."""
    start = next(
        (i for i, line in enumerate(lines) if re.search(rf"\b{re.escape(entry)}\s*\(", _code(line))
         and "__global__" in "".join(lines[max(0, i - 3) : i + 1])),
        0,
    )  # fmt: skip
    depth, opened = 0, False
    for i in range(start, len(lines)):
        code = _code(lines[i])
        depth += code.count("{") - code.count("}")
        opened = opened or "{" in code
        if opened and depth <= 0:
            return range(start + 1, i + 2)
    return range(start + 1, len(lines) + 1)


def _code(line: str) -> str:
    return line.partition("//")[0]


def _roles_by_line(trace: TraceData) -> dict[int, set[str]]:
    """Which of M, N and P each line touches in global memory: M and N where it loads, P where it stores."""
    names = {matrix.name: role for role, matrix in trace.matrices.items()}
    out: dict[int, set[str]] = {}
    events = trace.events
    for kind, wanted in ((EventKind.LOAD, "MN"), (EventKind.STORE, "P")):
        some = events.of(kind)
        for line, array in set(zip(some.line.tolist(), some.array.tolist(), strict=True)):
            role = names.get(trace.names[array], "")
            if role and role in wanted:
                out.setdefault(line, set()).add(role)
    return out


def _checks(lines: list[str], number: int, here: range, roles: dict[int, set[str]]) -> list[Drop]:
    code = _code(lines[number - 1])
    out = []
    for match in re.finditer(r"\bif\s*\(", code):
        end = _closing(code, match.end() - 1)
        if end is None or not re.search(r"[<>]", code[match.end() : end]):
            continue
        if re.match(r"\s*\{?\s*return\s*;", code[end + 1 :]):  # it guards all that follows
            out.append(Drop("check-P", number, match.start(), code.index(";", end) + 1))
            continue
        guarded = _guarded(lines, number, end, here)
        touched = _touched(roles, guarded)
        if touched and not touched & _touched(roles, _otherwise(lines, guarded, here)):
            out.append(Drop(_check_name(touched, number), number, match.start(), end + 1, "if (true)"))
    for match in _CHOICE.finditer(code):
        touched = roles.get(number, set()) & {"M", "N"}
        if touched and "if" not in code[: match.start()]:
            name = _check_name(touched, number)
            out.append(Drop(name, number, match.start("condition"), match.end("condition"), "true "))
    return out


def _is_branch(lines: list[str], number: int, column: int) -> bool:
    """Whether the statement there is the body of an if, else or loop without braces."""
    before = "\n".join([*map(_code, lines[: number - 1]), _code(lines[number - 1])[:column]]).rstrip()
    return re.search(r"(\)|\belse)$", before) is not None


def _check_name(touched: set[str], line: int) -> str:
    if "P" in touched:
        return "check-P"
    return f"check-{touched.pop()}" if len(touched) == 1 else f"check@{line}"


def _closing(code: str, at: int) -> int | None:
    """The position of the parenthesis that closes the one at `at`, on the same line."""
    depth = 0
    for i in range(at, len(code)):
        depth += {"(": 1, ")": -1}.get(code[i], 0)
        if depth == 0:
            return i
    return None


def _guarded(lines: list[str], number: int, end: int, here: range) -> range:
    """The lines of the statement behind the condition: to its semicolon, or to the brace that closes it."""
    depth, text = 0, _code(lines[number - 1])[end + 1 :]
    for n in range(number, here.stop):
        for letter in text if n == number else _code(lines[n - 1]):
            depth += {"{": 1, "}": -1}.get(letter, 0)
            if depth <= 0 and letter in "};":
                return range(number, n + 1)
    return range(number, here.stop)


def _touched(roles: dict[int, set[str]], lines: range) -> set[str]:
    return set[str]().union(*(roles.get(n, set()) for n in lines))


def _otherwise(lines: list[str], guarded: range, here: range) -> range:
    """The lines of the else branch. One that loads the same matrix makes the condition a fast path, not a check."""
    for n in range(guarded.stop - 1, min(guarded.stop + 2, here.stop)):
        found = re.search(r"\belse\b", _code(lines[n - 1]))
        if found:
            rest = _guarded([*lines[: n - 1], _code(lines[n - 1])[found.end() :], *lines[n:]], n, -1, here)
            return range(n if n >= guarded.stop else n + 1, rest.stop)
    return range(0)


def _unique_names(checks: list[Drop]) -> list[Drop]:
    """Drops with ambiguous names are named by their line numbers."""
    count = Counter(d.name for d in checks)
    return [d if count[d.name] == 1 else replace(d, name=f"{CHECK}@{d.line}") for d in checks]


def without(text: str, drops: tuple[Drop, ...]) -> str:
    """The kernel with these checks and barriers left out."""
    lines = text.split("\n")
    for drop in sorted(drops, key=lambda d: (d.line, -d.first)):
        line = lines[drop.line - 1]
        what = text.split("\n")[drop.line - 1][drop.first : drop.last].strip()
        if line[: drop.first] + line[drop.first : drop.last] not in line:
            raise ValueError(f"{drop.name}: line {drop.line} is too short to leave {what!r} out")
        kept, _, note = f"{line[: drop.first]}{drop.instead}{line[drop.last :]}".partition("// was: ")
        lines[drop.line - 1] = f"{kept.rstrip()}  // was: {what}{'; ' + note if note else ''}"
    return "\n".join(lines)
