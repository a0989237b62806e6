"""A program's LLVM text without compiling or running it."""

from __future__ import annotations

from pathlib import Path

from tilewise.emulator.host.lower.function import LoweredProgram
from tilewise.emulator.host.lower.module import module_text
from tilewise.emulator.host.translation_unit import read_unit
from tilewise.emulator.parse.parser import read_tokens


class Addresses:
    """Memory that only gives out addresses."""

    base, size, shift = 1 << 40, 1 << 36, 1 << 36
    line_address, stack_address, stack_end = (1 << 40) + 64, (1 << 40) + 128, (1 << 40) + (1 << 26)

    epoch_address, native_address = (1 << 40) + 192, (1 << 40) + 256

    def __init__(self) -> None:
        self.next = self.base + (1 << 30)

    def static(self, size, name, device, host=False, unset=False, line=0):
        self.next += size + 64
        return self.next

    def private(self, size):
        return self.static(size, "", False)

    def constant(self, data):
        return self.static(len(data), "", False)


def lowered(path: Path) -> str:
    unit = read_unit(path, [], {})
    declared = read_tokens(unit.source, unit.tokens, unit.declared, library=False)
    program = LoweredProgram(unit.source, declared.entities, declared.names, Addresses())
    return module_text(program)
