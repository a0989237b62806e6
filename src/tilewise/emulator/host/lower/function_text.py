"""The LLVM text of one function: blocks, temporaries, the frame in checked memory, calls and reports."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.host.lower.marks import SHADOW
from tilewise.emulator.host.lower.program import Program
from tilewise.emulator.host.lower.values import Value
from tilewise.emulator.parse.types import BOOL, Type
from tilewise.errors import KernelError

FRAME_GAP = 64  # unaddressable bytes between variables of a frame


def by_address(type_: Type) -> str:
    """Objects are passed by address; the callee does not check it, so `containment` checks it in each call."""
    return f"ptr dereferenceable({max(1, type_.size)})"


class FunctionText:
    detail = ""  # of `checked_memory.access_detail`, where it is a parameter

    def __init__(self, program: Program, library: bool) -> None:
        self.program = program
        self.library = library
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.slots: list[str] = []  # frame addresses, computed in the entry block: a goto may skip a declaration
        self.count = 0
        self.open = True
        self.frame = 0
        self.calls: set[str] = set()
        self.line = 0
        self.noted_line = 0
        self.may_uninitialise = False  # an object was copied: initialised bytes may have become uninitialised
        self.attributes = "#0"  # of the function; #1 enables this processor's vector instructions

    def before_report(self) -> None:
        """Called where the text of a report begins."""

    def note_store(self, address: str, size: int) -> None:
        """Called where bytes are stored; `size` 0: an unknown number."""

    # -- text

    def name(self) -> str:
        self.count += 1
        return f"%t{self.count}"

    def label(self) -> str:
        self.count += 1
        return f"L{self.count}"

    def emit(self, text: str) -> None:
        if self.open:
            self.lines.append("  " + text)

    def make(self, text: str) -> str:
        """Emit an instruction with a result; the result's name."""
        name = self.name()
        self.emit(f"{name} = {text}")
        return name

    def value(self, type_: Type, text: str) -> Value:
        return Value(type_, self.make(text))

    def begin(self, label: str) -> None:
        if self.open:
            self.lines.append(f"  br label %{label}")
        self.lines.append(f"{label}:")
        self.open = True
        self.noted_line = 0

    def jump(self, label: str) -> None:
        self.emit(f"br label %{label}")
        self.open = False

    def branch(self, condition: str, yes: str, no: str, likely: bool | None = None) -> None:
        weights = "" if likely is None else f", !prof !{int(likely)}"
        self.emit(f"br i1 {condition}, label %{yes}, label %{no}{weights}")
        self.open = False

    def alloca(self, llvm: str) -> str:
        self.count += 1
        name = f"%v{self.count}"
        self.allocas.append(f"  {name} = alloca {llvm}")
        return name

    def refuse(self, message: str, node: Any = None) -> KernelError:
        line = getattr(node, "line", 0) or self.line
        return self.program.refusal(message, line, getattr(node, "column", 1) or 1)

    # -- the frame

    def frame_slot(self, size: int, align: int) -> str:
        """A ptr into the function's frame on the checked stack."""
        align = max(16, align)
        self.frame = -(-self.frame // align) * align
        offset = self.frame
        self.frame += size + max(FRAME_GAP, min(size, 1 << 20))
        at, address = self.name(), self.name()
        self.slots.append(f"  {at} = add i64 %frame, {offset + FRAME_GAP}")
        self.slots.append(f"  {address} = inttoptr i64 {at} to ptr")
        return address

    def temporary(self, type_: Type) -> str:
        """Memory for an unnamed object: addressable, not initialised."""
        address = self.frame_slot(type_.size, type_.align)
        self.set_state(address, str(type_.size), 1)
        return address

    def set_state(self, address: str, size: str, state: int) -> None:
        """Set the shadow of bytes: 0 unaddressable, 1 uninitialised, 3 initialised."""
        at = self.make(f"ptrtoint ptr {address} to i64")
        there = self.make(f"add i64 {at}, {self.program.memory.shift}{SHADOW}")
        pointer = self.make(f"inttoptr i64 {there} to ptr")
        self.emit(f"call void @llvm.memset.p0.i64(ptr {pointer}, i8 {state}, i64 {size}, i1 false)")

    def offset(self, address: str, bytes_: int | str) -> str:
        if bytes_ == 0:
            return address
        return self.make(f"getelementptr i8, ptr {address}, i64 {bytes_}")

    # -- calls

    def note_line(self, line: int, column: int = 0) -> None:
        """Store the current line, and the column of a call on it, where the runtime reads them for its reports."""
        place = line | column << 32
        if not self.library and line and self.noted_line != place:
            self.emit(f"store i64 {place}, ptr inttoptr (i64 {self.program.memory.line_address} to ptr)")
            self.noted_line = place

    def call(self, result: Type, callee: str, arguments: list[tuple[str, str]], llvm: str | None = None) -> str:
        """Emit a call; arguments are (LLVM type, text). The name of the result, or ''."""
        given = ", ".join(f"{t} {v}" for t, v in arguments)
        kind = llvm if llvm is not None else result.llvm
        self.calls.add(callee)
        if kind == "void":
            self.emit(f"call void {callee}({given})")
            return ""
        return self.make(f"call {kind} {callee}({given})")

    def report_if(self, condition: str, callee: str, arguments: list[tuple[str, str]]) -> None:
        """If `condition` holds, which is unlikely, call a reporting function of the runtime."""
        bad, good = self.label(), self.label()
        self.branch(condition, bad, good, likely=False)
        self.begin(bad)
        self.program.external(callee)
        self.before_report()
        given = ", ".join(f"{t} {v}" for t, v in arguments)
        self.emit(f"call void @{callee}({given}) cold")
        self.jump(good)
        self.begin(good)

    def line_text(self) -> str:
        """The line to report: the current one; in a library function, that of the program's call."""
        if not self.library:
            return str(self.line)
        return self.make(f"load i32, ptr inttoptr (i64 {self.program.memory.line_address} to ptr)")

    def to_memory(self, type_: Type, text: str) -> str:
        return self.make(f"zext i1 {text} to i8") if type_ is BOOL else text

    def from_memory(self, type_: Type, text: str) -> str:
        return self.make(f"trunc i8 {text} to i1") if type_ is BOOL else text
