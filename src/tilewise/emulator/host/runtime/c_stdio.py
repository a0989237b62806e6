"""printf, scanf and other functions of <stdio.h>."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any

from tilewise.emulator.host.runtime.c_memory import put_text, readable, string, writable
from tilewise.emulator.host.runtime.host_faults import report_access, stopped
from tilewise.emulator.host.runtime.program_files import opened, put, removed
from tilewise.emulator.host.runtime.scanning import scan
from tilewise.emulator.host.runtime.session import Function, Session, runtime
from tilewise.emulator.machine.findings import Kind
from tilewise.emulator.machine.formatting import format_quickly, formatted, python_format
from tilewise.errors import LimitError

MAX_ARGUMENTS = 1 << 16  # of a call of vprintf
PIECE = 1 << 20  # bytes that are copied at once


class Stream:
    """An open file; 0, 1 and 2 are the program's own streams."""

    def __init__(self, handle: Any, name: str) -> None:
        self.handle = handle
        self.name = name
        self.at_end = False
        self.line = 0
        self.pushed = b""
        self.was_read = False


def _arguments(s: Session, packed: int, count: int) -> list[tuple[int, int]]:
    if not 0 <= count <= MAX_ARGUMENTS:
        raise LimitError(f"a call with {count} variadic arguments: at most {MAX_ARGUMENTS} are taken")
    raw: Any = s.memory.cells(packed, ctypes.c_uint64, 2 * count) if count else []
    return [(raw[2 * i], raw[2 * i + 1]) for i in range(count)]


def checked_va_list(function: Function) -> Function:
    """vprintf and similar: check the arguments' address and count, which come from a va_list of the program."""

    def checked(s: Session, *given: int) -> int:
        *before, packed, count = given
        if not 0 <= count <= MAX_ARGUMENTS:
            report_access(s, packed, 16 * MAX_ARGUMENTS, s.line, "read")
            count = 0
        if not readable(s, packed, 16 * count):
            count = 0
        return int(function(s, *before, packed, count))

    return checked


def _format(s: Session, format_: int, packed: int, count: int) -> bytes:
    text = string(s, format_)
    how = python_format(text)
    if how is not None and len(how.fits) == count:
        made = format_quickly(how, bytes(s.memory.cells(packed, ctypes.c_char, 16 * count)))
        if made is not None:
            return made
    line = s.line

    def misused(message: str) -> None:
        s.faults.add(Kind.FORMAT, line, f"printf: {message}", "let the conversion fit the argument", access="printf")

    return formatted(text, _arguments(s, packed, count), lambda a: string(s, a), misused)


def stream_of(s: Session, pointer: int) -> Stream | None:
    known: dict[int, Stream] = s.state.setdefault("streams", {})
    found = known.get(pointer)
    if found is None:
        name, line = s.state.get("not opened", ("", 0))
        hint = f"{name} could not be opened at line {line}: check what fopen returned" if name else "fopen it first"
        stopped(s, Kind.NULL_POINTER, s.line, "a file is used that is not open", hint, access="file")
    return found


@runtime("__stream")
def standard_stream(s: Session, number: int) -> int:
    handle = {0: sys.stdin.buffer, 1: 1, 2: 2}[number]
    address = s.memory.static(8, "", False)
    s.state.setdefault("streams", {})[address] = Stream(handle, ("stdin", "stdout", "stderr")[number])
    s.state.setdefault("standard", {})[number] = address
    return address


def _stdin(s: Session) -> int:
    known: dict[int, int] = s.state.get("standard", {})
    return known[0] if 0 in known else standard_stream(s, 0)


def write(s: Session, pointer: int, data: bytes) -> None:
    found = stream_of(s, pointer)
    if found is None:
        return
    if found.handle == 1:
        s.console.write(data)
    elif found.handle == 2:
        s.console.error(data)
    elif found.handle is not None:
        put(s, found.handle, data)


@runtime("printf")
def printf(s: Session, format_: int, packed: int, count: int) -> int:
    data = _format(s, format_, packed, count)
    s.console.write(data)
    return len(data)


@runtime("fprintf")
def fprintf(s: Session, stream: int, format_: int, packed: int, count: int) -> int:
    data = _format(s, format_, packed, count)
    write(s, stream, data)
    return len(data)


@runtime("sprintf")
def sprintf(s: Session, to: int, format_: int, packed: int, count: int) -> int:
    data = _format(s, format_, packed, count)
    put_text(s, to, data)
    return len(data)


@runtime("snprintf")
def snprintf(s: Session, to: int, size: int, format_: int, packed: int, count: int) -> int:
    data = _format(s, format_, packed, count)
    if size > 0:
        put_text(s, to, data[: size - 1])
    return len(data)


for _function in (printf, fprintf, sprintf, snprintf):
    runtime(f"__v{_function.__name__}")(checked_va_list(_function))


@runtime("puts")
def puts(s: Session, text: int) -> int:
    s.console.write(string(s, text) + b"\n")
    return 1


@runtime("putchar")
def putchar(s: Session, c: int) -> int:
    s.console.write(bytes([c & 255]))
    return c & 255


@runtime("fputs")
def fputs(s: Session, text: int, stream: int) -> int:
    write(s, stream, string(s, text))
    return 1


@runtime("fputc", "putc")
def fputc(s: Session, c: int, stream: int) -> int:
    write(s, stream, bytes([c & 255]))
    return c & 255


@runtime("fflush")
def fflush(s: Session, stream: int) -> int:
    s.console.flush_requested()
    return 0


@runtime("perror")
def perror(s: Session, text: int) -> None:
    s.console.error(string(s, text) + b": No such file or directory\n")


@runtime("setvbuf")
def setvbuf(s: Session, stream: int, buffer: int, mode: int, size: int) -> int:
    return 0


# -- files


def open_file(s: Session, name: str, mode: str) -> int:
    """The address of a FILE, or 0."""
    handle = opened(s, name, mode or "r")
    if handle is None:
        return 0
    address = s.memory.allocate(8, "fopen", s.line).address
    found = Stream(handle, name)
    found.line = s.line
    s.state.setdefault("streams", {})[address] = found
    return address


@runtime("fopen")
def fopen(s: Session, name: int, mode: int) -> int:
    return open_file(s, string(s, name).decode("utf-8", "replace"), string(s, mode).decode("latin-1"))


@runtime("fclose")
def fclose(s: Session, stream: int) -> int:
    found = stream_of(s, stream)
    if found is not None and not isinstance(found.handle, int):
        found.handle.close()
        s.state["streams"].pop(stream, None)
        block = s.memory.find(stream)
        if block is not None and block.kind == "fopen":
            s.memory.release(block, s.line)
    return 0


def _read(s: Session, stream: int, size: int, pause: bool = False) -> bytes:
    found = stream_of(s, stream)
    if found is None or isinstance(found.handle, int):
        return b""
    if found.name == "stdin":
        s.console.flush()
    data, found.pushed = found.pushed[:size], found.pushed[size:]
    if len(data) < size:
        data += found.handle.read(size - len(data))
    if len(data) < size:
        found.at_end = True
        if found.name == "stdin" and not data and not found.was_read:
            s.misses_input(pause)
    found.was_read = found.was_read or bool(data)
    return data


@runtime("fread")
def fread(s: Session, to: int, size: int, count: int, stream: int) -> int:
    data = _read(s, stream, size * count)
    if data and writable(s, to, len(data)):
        s.memory.put(to, data)
    return len(data) // max(1, size)


@runtime("fwrite")
def fwrite(s: Session, source: int, size: int, count: int, stream: int) -> int:
    if readable(s, source, size * count):
        for at in range(0, size * count, PIECE):  # the limit of output ends the run before all of it is copied
            write(s, stream, s.memory.view(source + at, min(PIECE, size * count - at)).tobytes())
    return count


@runtime("fgetc", "getc")
def fgetc(s: Session, stream: int) -> int:
    data = _read(s, stream, 1, pause=True)
    return data[0] if data else -1


@runtime("getchar")
def getchar(s: Session) -> int:
    return int(fgetc(s, _stdin(s)))


@runtime("fgets")
def fgets(s: Session, to: int, size: int, stream: int) -> int:
    data = b""
    if size == 1:  # room for the 0 alone: nothing is read
        put_text(s, to, data)
        return to
    while len(data) < size - 1 and not data.endswith(b"\n"):
        more = _read(s, stream, 1)
        if not more:
            break
        data += more
    if not data:
        return 0
    put_text(s, to, data)
    return to


@runtime("ungetc")
def ungetc(s: Session, character: int, stream: int) -> int:
    found = stream_of(s, stream)
    if found is None or isinstance(found.handle, int) or character < 0:
        return -1
    found.pushed, found.at_end = bytes([character & 255]) + found.pushed, False
    return character & 255


@runtime("clearerr")
def clearerr(s: Session, stream: int) -> None:
    found = stream_of(s, stream)
    if found is not None:
        found.at_end = False


@runtime("fseek")
def fseek(s: Session, stream: int, offset: int, start: int) -> int:
    found = stream_of(s, stream)
    if found is not None and not isinstance(found.handle, int):
        try:
            found.handle.seek(offset - (len(found.pushed) if start == os.SEEK_CUR else 0), start)
        except (OSError, ValueError, OverflowError):  # before the beginning
            return -1
        found.at_end, found.pushed = False, b""
    return 0


@runtime("rewind")
def rewind(s: Session, stream: int) -> None:
    fseek(s, stream, 0, 0)


@runtime("ftell")
def ftell(s: Session, stream: int) -> int:
    found = stream_of(s, stream)
    return 0 if found is None or isinstance(found.handle, int) else int(found.handle.tell() - len(found.pushed))


@runtime("feof")
def feof(s: Session, stream: int) -> int:
    found = stream_of(s, stream)
    return int(found is not None and found.at_end)


@runtime("ferror")
def ferror(s: Session, stream: int) -> int:
    return 0


@runtime("remove")
def remove(s: Session, name: int) -> int:
    return 0 if removed(s, string(s, name).decode("utf-8", "replace")) else -1


@runtime("scanf")
def scanf(s: Session, format_: int, packed: int, count: int) -> int:
    return int(fscanf(s, _stdin(s), format_, packed, count))


@runtime("fscanf")
def fscanf(s: Session, stream: int, format_: int, packed: int, count: int) -> int:
    def take() -> bytes:
        return _read(s, stream, 1)

    done, pushed = scan(s, string(s, format_), _arguments(s, packed, count), take)
    found = stream_of(s, stream)
    if found is not None and pushed:
        found.pushed = pushed + found.pushed
        found.at_end = False
    if done < 0 and s.wanted == "input" and found is not None and not found.was_read:
        s.lacks_input()
    return done


@runtime("sscanf")
def sscanf(s: Session, text: int, format_: int, packed: int, count: int) -> int:
    data = string(s, text)
    at = iter([data[i : i + 1] for i in range(len(data))])
    return scan(s, string(s, format_), _arguments(s, packed, count), lambda: next(at, b""))[0]
