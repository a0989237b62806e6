"""Software fault isolation: no load or store of compiled code leaves the program's memory and its shadow.

Most addresses need no check: variables in the frame and globals, objects passed by the address of a `dereferenceable`
parameter, and accesses that the lowering checked itself (their lines end with OK). All others come from memory that the
program can write to, such as the pointer in a std::vector: they are compared with the bounds of the memory first, and
the program ends if they are outside. This pass reads the emitted text of each function, so that it does not depend on
what other parts of the lowering assume about their pointers."""

from __future__ import annotations

import re

from tilewise.emulator.host.lower.marks import INSIDE, OK, SHADOW, WITHIN
from tilewise.emulator.host.lower.program import Program
from tilewise.errors import EngineError

NEAR = 1 << 20  # bytes that constant offsets may add to a checked address; SLACK of runtime/memory.py is larger
CONTAIN = """
define internal void @contain(ptr %p, i64 %n) alwaysinline #0 {{
  %at = ptrtoint ptr %p to i64
  %off = sub i64 %at, {base}
  %room = sub i64 {size}, %n
  %inside = icmp ule i64 %off, %room
  %short = icmp ule i64 %n, {size}
  %fine = and i1 %inside, %short
  br i1 %fine, label %good, label %bad, !prof !1
bad:
  call void @rt_outside_memory(i64 %at, i64 %n) cold noreturn
  unreachable
good:
  ret void
}}
"""
NAME = r"%[\w.]+"
VALUE = r"(%[\w.]+|@[\w.]+|null|inttoptr \([^)]*\)|getelementptr \(.*?\)\)?)"
MADE = re.compile(rf"  ({NAME}) = (alloca|inttoptr|getelementptr|add i64|ptrtoint|phi ptr|call ptr)(?= )(.*)")
STEP = re.compile(rf" i8, ptr {VALUE}, i64 (\S+)")
SUM = re.compile(rf" ({NAME}), (-?\d+)")
FROM_NUMBER = re.compile(rf" i64 ({NAME}) to ptr")
TO_NUMBER = re.compile(rf" ptr {VALUE} to i64")
ALTERNATIVE = re.compile(rf"\[ {VALUE}, %")
OBJECT = re.compile(rf"ptr dereferenceable\((\d+)\) {VALUE}")
LOAD = re.compile(rf"  {NAME} = load ([^,]+), ptr {VALUE}")
STORE = re.compile(rf"  store (<[^>]+>|\S+) .*, ptr {VALUE}(?:, align \d+)?$")
SET = re.compile(rf"  call void @llvm\.memset\.p0\.i64\(ptr {VALUE}, i8 \d+, i64 (\S+), ")
COPY = re.compile(rf"  call void @(?:llvm\.memmove\.p0\.p0\.i64|copy_states)\(ptr {VALUE}, ptr {VALUE}, i64 (\S+), ")
OTHER_ACCESSES = re.compile(r"@llvm\.mem|@copy_states|@llvm\.masked|atomicrmw|cmpxchg")  # an error if still unmatched
CONSTANT = ("inttoptr", "getelementptr", "@")  # addresses that the compiler chose
SAFE_CALLS = ("@rt_new(", "@rt_variable_length(", "@rt_exception_memory(", "@rt_invalid_access(")  # return valid ones
SIZES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "ptr": 8, "float": 4, "double": 8, "half": 2, "bfloat": 2}
VECTOR = re.compile(r"<(\d+) x (\w+)>")
# the pointer that an address is derived from ('' if that is safe), the offset from it, whether it is in the shadow
Origin = tuple[str, int, bool]
SAFE: Origin = ("", 0, False)


def function(p: Program) -> str:
    p.external("rt_outside_memory")
    return CONTAIN.format(base=p.memory.base, size=p.memory.size)


def contained(p: Program, text: list[str]) -> list[str]:
    """The text of a function, its prologue included, with calls of @contain before unchecked accesses."""
    return _Function(p.memory.shift, text).lines()


class _Function:
    def __init__(self, shift: int, text: list[str]) -> None:
        self.shift = shift
        self.text = text
        self.made: dict[str, tuple[str, str]] = {}
        self.known: dict[str, Origin | None] = {"%frame": SAFE}
        self.out: list[str] = []
        self.seen: set[str] = set()  # pointers that this basic block has checked

    def lines(self) -> list[str]:
        large: list[str] = []
        for size, name in OBJECT.findall(self.text[0]):
            self.known[name] = SAFE
            if int(size) > NEAR:  # an override's class may be larger than the class that the call site checked
                large.append(f"  call void @contain(ptr {name}, i64 {size})")
        for line in self.text:
            found = MADE.match(line)
            if found is not None:
                self.made[found[1]] = (found[2], found[3])
        for line in self.text:
            if line.endswith(":"):
                self.seen.clear()
            elif line.startswith(INSIDE):
                root, offset, _ = self.pointer(line.removeprefix(INSIDE))
                if abs(offset) <= NEAR:
                    self.seen.add(root)
                continue
            elif not line.endswith(OK):
                self.check(line)
            self.out.append(line)
            if line == "entry:":
                self.out += large
        return self.out

    def check(self, line: str) -> None:
        """Emit the checks that this line needs."""
        if line.startswith("  store "):
            store = STORE.match(line)
            if store is None:
                raise EngineError(f"a store of an unknown form: {line}")
            self.require(store[2], _size(store[1]))
        elif " = load " in line:
            load = LOAD.match(line)
            if load is None:
                raise EngineError(f"a load of an unknown form: {line}")
            self.require(load[2], _size(load[1]))
        elif "dereferenceable(" in line:
            if not line.startswith("define"):
                for size, name in OBJECT.findall(line):
                    self.require(name, int(size))
        elif (filled := SET.match(line)) is not None:
            self.require(filled[1], filled[2])
        elif (copied := COPY.match(line)) is not None:
            self.require(copied[1], copied[3])
            self.require(copied[2], copied[3])
        elif OTHER_ACCESSES.search(line):
            raise EngineError(f"a memory access of an unknown form: {line}")

    def require(self, name: str, size: int | str) -> None:
        """Check that `size` bytes from this address are in memory, or in the shadow."""
        if name.startswith(CONSTANT):  # the compiler's own constants
            return
        if name == "null":
            self.out.append(f"  call void @contain(ptr null, i64 {size})")
            return
        root, offset, states = self.pointer(name)
        if isinstance(size, str) and size.isdigit():
            size = int(size)
        if isinstance(size, int) and not root and (offset == 0 or abs(offset) + size <= NEAR):
            return
        if isinstance(size, int) and abs(offset) + size <= NEAR:
            if root not in self.seen:
                self.seen.add(root)
                self.out.append(f"  call void @contain(ptr {root}, i64 0)")
            return
        if states:
            there = f"%bytes{len(self.out)}"
            self.out.append(f"  {there} = getelementptr i8, ptr {name}, i64 {-self.shift}")
            name = there
        self.out.append(f"  call void @contain(ptr {name}, i64 {size})")

    def pointer(self, name: str) -> Origin:
        """What a pointer is derived from; itself, if nothing else is known."""
        if name.startswith(CONSTANT):
            return SAFE
        if name not in self.known:
            self.known[name] = None
            self.known[name] = self._pointer(name)
        return self.known[name] or (name, 0, False)

    def _pointer(self, name: str) -> Origin | None:
        kind, rest = self.made.get(name, ("", ""))
        if kind == "alloca" or (kind == "call ptr" and any(call in rest for call in SAFE_CALLS)):
            return SAFE
        if kind == "inttoptr" and (number := FROM_NUMBER.match(rest)) is not None:
            return self.number(number[1])
        if kind == "phi ptr" and all(self.pointer(n) == SAFE for n in ALTERNATIVE.findall(rest)):
            return SAFE
        if kind != "getelementptr":
            return None
        step = STEP.match(rest)
        if step is None:  # a lane of a vector in an alloca
            base = re.search(NAME, rest)
            return SAFE if base is not None and self.made.get(base[0], ("",))[0] == "alloca" else None
        root, offset, states = self.pointer(step[1])
        if re.fullmatch(r"-?\d+", step[2]):
            return root, offset + int(step[2]), states
        return (root, offset, states) if rest.endswith(OK) or (rest.endswith(WITHIN) and not root) else None

    def number(self, name: str) -> Origin | None:
        """What an integer is derived from, if that is a pointer or the frame."""
        if name == "%frame":
            return SAFE
        kind, rest = self.made.get(name, ("", ""))
        if kind == "ptrtoint" and (pointer := TO_NUMBER.match(rest)) is not None:
            return self.pointer(pointer[1])
        if kind != "add i64" or (sum_ := SUM.match(rest)) is None:
            return None
        found = self.number(sum_[1])
        if found is None:
            return None
        root, offset, states = found
        if rest.endswith(SHADOW):
            return root, offset + int(sum_[2]) - self.shift, True
        if sum_[1] == "%frame":  # a variable; the whole frame was checked
            return SAFE
        return root, offset + int(sum_[2]), states


def _size(kind: str) -> int:
    vector = VECTOR.fullmatch(kind)
    if vector is not None:
        return int(vector[1]) * SIZES[vector[2]]
    return SIZES.get(kind, 64)
