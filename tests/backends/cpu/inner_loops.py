"""What a kernel's innermost loops are made of, read from the assembly that LLVM makes of it: no machine is needed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tilewise.backends.cpu.runtime import compile
from tilewise.backends.cpu.runtime.target import Target

LABEL = re.compile(r"^(\.L\w+):")
JUMP = re.compile(r"\t(b|b\.\w+|cbn?z|tbn?z|j\w+)\t(?:.*, ?)?(\.L\w+)")
ADDEND = re.compile(r"\tadd[lq]\t[^,]*\(%rsp\), %r")  # of an address, once for many steps: it takes no port they need
STACK = re.compile(r"\[sp|\(%rsp[),]")  # without a frame pointer, rbp and x29 are registers like any other


@dataclass(frozen=True)
class Loop:
    function: str
    lines: tuple[str, ...]

    def count(self, pattern: str) -> int:
        return sum(bool(re.search(pattern, line)) for line in self.lines)

    @property
    def instructions(self) -> int:
        return len(self.lines)

    @property
    def fma(self) -> int:
        return self.count(r"\t(fml[as]|vfn?m(add|sub))")

    @property
    def vector_operations(self) -> int:
        """What takes a vector port of NEON: everything on vectors that is no load of whole ones, no store."""
        whole = self.count(r"\t(ld[pr]|ldur|st[pr]|stur)\tq")
        return self.count(r"\b[vqd]\d+\b") - whole - self.count(r"\tldr\t[sd]\d")

    @property
    def spills(self) -> int:
        """Moves between a register and the stack."""
        return self.count(STACK.pattern) - self.count(ADDEND.pattern)

    def __str__(self) -> str:
        return f"{self.function}: {self.instructions} instructions, {self.fma} fma, {self.spills} spills"


def assembly(text: str, target: Target) -> str:
    llvm = compile._llvm()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    triple = target.triple or llvm.get_process_triple()
    module = llvm.parse_assembly(f'target triple = "{triple}"\n{text}')
    return str(compile._machine(target, triple).emit_assembly(module))


def innermost(text: str, target: Target) -> Iterator[Loop]:
    """Every loop that holds no other one."""
    for function in re.split(r"\n(?=\w[\w.]*:)", assembly(text, target)):
        name = function.partition(":")[0]
        lines = [line for line in function.split("\n") if LABEL.match(line) or re.match(r"\t[a-z]", line)]
        places = {m.group(1): i for i, line in enumerate(lines) if (m := LABEL.match(line))}
        back = []
        for i, line in enumerate(lines):
            jump = JUMP.match(line)
            if jump and places.get(jump.group(2), i) < i:
                back.append((places[jump.group(2)], i))
        for first, last in back:
            if not any(first <= a and b <= last and (a, b) != (first, last) for a, b in back):
                yield Loop(name, tuple(line for line in lines[first : last + 1] if not LABEL.match(line)))
