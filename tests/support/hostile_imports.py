"""Functions of the runtime with hostile arguments, as a program calls them that has escaped the compiler's checks.

Addresses in and around every kind of memory, sizes at every edge, texts and handles that a program has. Every other
batch of calls comes out of WebAssembly: code of one function each passes what it is given to its import. Whatever a
function does is fine but for a signal, more memory than MOST_MEMORY, or a single call that the watch of a program could
not end. Batches are forks of one process; what one calls is written to shared memory, so that a call that ended it
is known.

    python tests/support/hostile_imports.py CALLS [SEED]     counts as a last line of JSON
"""

from __future__ import annotations

import inspect
import json
import mmap
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from tilewise.emulator.host import running
from tilewise.emulator.host.lower.module import RUNTIME, runtime_signature
from tilewise.emulator.host.options import WASM, Options
from tilewise.emulator.host.runtime.session import FUNCTIONS, Session

PROGRAM = """#include <cstdio>
#include <vector>
__global__ void k(int* a) { a[0] = 1; }
int main() {
  int* d; cudaMalloc(&d, 4); k<<<1, 1>>>(d); cudaFree(d); printf("x"); std::vector<int> v(3); return v[0];
}
"""
BATCH = 10_000  # calls of one process
SECONDS, UNINTERRUPTIBLE = 0.25, 10.0  # a call is interrupted, as the watch would; how late that may be
MOST_MEMORY = 3 << 30
EDGES = [
    1 << 31,
    (1 << 31) - 1,
    -(1 << 31),
    1 << 32,
    (1 << 63) - 1,
    -(1 << 63),
    (1 << 64) - 1,
    1 << 20,
    1 << 36,
    1 << 40,
]
TEXTS = [
    b"", b"r", b"w+", b"no such file", b"7 -3 1e9 0x", b"%s", b"%d %ld %c %p %%", b"%n", b"%*.*f", b"%99999999d",
    b"%.99999999f", b"%lf %s %[^\n]", b"%1$s", b"%", b"a" * 5000, "\u00e9\U0001f600".encode(),
    bytes(range(1, 256)), b"../../x", b"/",
]  # fmt: skip
NOT_CALLED = {"rt_trap"}  # by programs
FILLED = 1 << 12  # bytes of the blocks that arguments point to
CALLED_BACK = """
define void @nothing() {
  ret void
}
define i32 @compare(ptr %a, ptr %b) {
  ret i32 1
}
@table = internal global [2 x ptr] [ptr @nothing, ptr @compare]
"""


class Ended(BaseException):
    """The program would end here."""


class Late(BaseException):
    pass


class Form(NamedTuple):
    """What a function takes: kinds of LLVM, and whether further numbers may follow."""

    result: str
    kinds: list[str]
    more: bool


def form_of(name: str, draw: random.Random) -> Form:
    """As it is declared; of one that a header declares, as the Python function is written."""
    if name in RUNTIME:
        result, kinds = runtime_signature(name, None)
        return Form(result, kinds, False)
    parameters = list(inspect.signature(FUNCTIONS[name]).parameters.values())[1:]
    kinds = [
        "double" if p.annotation == "float" else draw.choice(["i32", "i64", "ptr"])
        for p in parameters
        if p.kind is not inspect.Parameter.VAR_POSITIONAL
    ]
    returned = inspect.signature(FUNCTIONS[name]).return_annotation
    result = {"None": "void", "float": "double"}.get(str(returned), draw.choice(["i32", "i64", "ptr"]))
    return Form(result, kinds, len(kinds) != len(parameters))


def session_of(folder: Path) -> Session:
    path = folder / "program.cu"
    path.write_text(PROGRAM)
    session, _ = running.build(path, Options(target=WASM, memory=1 << 28), lambda document: None)

    def end(*_: object, **__: object) -> None:
        raise Ended

    session.finish = end  # type: ignore[method-assign]
    session._end = end  # type: ignore[method-assign]
    # the broker in the parent opens nothing
    session.files = SimpleNamespace(request=lambda *_: (-1, 2), **dict.fromkeys(("open", "remove"), lambda *_: None))
    return session


def calls_from_webassembly(session: Session, forms: dict[str, Form]) -> dict[str, Callable[..., Any]]:
    """For each function code that calls it, which a program's own code could be."""
    symbols, texts, entries = {}, [CALLED_BACK], ["@nothing"]
    for name, form in forms.items():
        symbols[name] = session.address_of(name, form.result, form.kinds)
        given = ", ".join(f"{kind} %a{i}" for i, kind in enumerate(form.kinds))
        made = "" if form.result == "void" else "%r = "
        returned = "ret void" if form.result == "void" else f"ret {form.result} %r"
        texts.append(
            f"declare {form.result} @{name}({', '.join(form.kinds)})\ndefine {form.result} @call_{name}({given}) {{\n"
            f"  {made}call {form.result} @{name}({given})\n  {returned}\n}}\n"
        )
        entries.append(f"@call_{name}")
    table = ", ".join(f"ptr {entry}" for entry in entries)
    texts.append(
        f"@entries = internal constant [{len(entries)} x ptr] [{table}]\ndefine i64 @start(i64 %i) {{\n"
        f"  %p = getelementptr ptr, ptr @entries, i64 %i\n  %f = load volatile ptr, ptr %p\n"
        "  %n = ptrtoint ptr %f to i64\n  ret i64 %n\n}\n"
    )
    target = session.memory.target
    number_of = target.load("\n".join(texts), symbols, "start", ("i64", "i64"), level=1)
    return {
        name: target.function(number_of(i + 1), (form.result, *form.kinds))
        for i, (name, form) in enumerate(forms.items())
    }


def fitting(value: int, kind: str) -> float:
    """As an argument of WebAssembly."""
    if kind == "double":
        return float(value) if value % 7 else float("nan")
    bits = 32 if kind == "i32" else 64
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> bits - 1 else value


class Values:
    def __init__(self, session: Session, draw: random.Random) -> None:
        m = session.memory
        self.draw = draw
        self.blocks = [
            m.allocate(FILLED, "malloc", 1).address, m.static(FILLED, "g", False), m.stack_start,
            m.allocate(FILLED, "cudaMalloc", 1, device=True, host=False).address,
        ]  # fmt: skip
        self.texts = [m.constant(text + b"\0") for text in TEXTS]
        self.handles = [1, 2, *(FUNCTIONS["__stream"](session, n) for n in (0, 1, 2))]
        self.around = [m.base, m.base + m.size, m.base + m.shift, m.device_start, m.line_address, m.epoch_address]
        for block in self.blocks:  # objects whose members are anything
            m.set(block, 0, FILLED, give=3)
            for at in range(0, FILLED, 8):
                m.put(block + at, (self.one() & (1 << 64) - 1).to_bytes(8, "little"))

    def one(self) -> int:
        draw, kind = self.draw, self.draw.random()
        if kind < 0.3:
            return draw.choice(self.blocks) + draw.choice([0, 0, 8, -8, FILLED - 1, draw.randrange(-5000, 9000)])
        if kind < 0.55:
            return draw.randrange(-5, 70)
        if kind < 0.7:
            return draw.choice(self.texts)
        if kind < 0.75:
            return draw.choice(self.handles)
        return draw.choice(self.around if kind < 0.87 else EDGES) + draw.randrange(-16, 16)


def ending(function: Callable[..., Any], given: list[Any]) -> str:
    """How a call ended."""
    signal.setitimer(signal.ITIMER_REAL, SECONDS, SECONDS)  # again, where a destructor swallowed the first one
    try:
        function(*given)
    except (Ended, Late, Exception) as error:  # an exception of Python ends the program with the status of a failure
        return type(error).__name__
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return "returned"


def batch(session: Session, calls: int, seed: int, through: bool, note: mmap.mmap) -> tuple[Counter[str], list[str]]:
    draw, counts, problems = random.Random(seed), Counter[str](), []

    def late(*_: object) -> None:
        raise Late

    def unraised(what: Any) -> None:  # an exception cannot pass compiled code
        counts[f"{what.exc_type.__name__} in a call"] += 1

    def leave(status: int) -> None:
        raise Ended

    signal.signal(signal.SIGALRM, late)
    os._exit, sys.unraisablehook = leave, unraised  # type: ignore[assignment]
    forms = {name: form_of(name, draw) for name in sorted(set(FUNCTIONS) - NOT_CALLED)}
    compiled = calls_from_webassembly(session, forms) if through else {}
    values = Values(session, draw)
    names = list(forms)
    for number in range(calls):
        name = draw.choice(names)
        _, kinds, more = forms[name]
        given: list[Any] = [values.one() for _ in kinds]
        given += [values.one() for _ in range(draw.randrange(5)) if more and not through]
        if through:
            given = [fitting(value, kind) for value, kind in zip(given, kinds, strict=True)]
        text = f"seed {seed}, call {number}, {'through wasmtime' if through else 'direct'}: {name}{tuple(given)}"
        note[: len(text) + 1] = text.encode() + b"\0"
        began = time.monotonic()
        try:
            counts[ending(compiled[name] if through else partial(FUNCTIONS[name], session), given)] += 1
        except Late:  # as it returned
            counts["Late"] += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        took = time.monotonic() - began
        taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        if took > UNINTERRUPTIBLE or taken > MOST_MEMORY:
            problems.append(f"{text} took {took:.1f} s, {taken >> 20} MiB")
            break
    return counts, problems


def apart(session: Session, calls: int, seed: int, through: bool) -> tuple[Counter[str], list[str]]:
    """One batch, in a fork."""
    note = mmap.mmap(-1, 1 << 16)
    reader, writer = os.pipe()
    end = os._exit
    child = os.fork()
    if child == 0:
        status = 1
        try:
            null = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(null, descriptor)
            made = batch(session, calls, seed, through, note)
            os.write(writer, json.dumps(made).encode())
            status = 0
        except BaseException as error:
            os.write(
                writer, json.dumps([{}, [f"the batch of seed {seed} failed: {type(error).__name__}: {error}"]]).encode()
            )
        finally:
            end(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) or not text:
        called = note[:].partition(b"\0")[0].decode()
        return Counter(), [f"ended by {os.waitstatus_to_exitcode(status)} in {called}"]
    counts, problems = json.loads(text)
    return Counter(counts), problems


def main(calls: int, seed: int) -> list[str]:
    counts, problems, done = Counter[str](), [], 0
    with tempfile.TemporaryDirectory() as folder:
        session = session_of(Path(folder))
        for number in range(-(-calls // BATCH)):
            size = min(BATCH, calls - done)
            made, wrong = apart(session, size, seed * 1000 + number, through=number % 2 == 1)
            counts += made
            problems += wrong
            done += size
            for line in wrong:
                print(line, flush=True)
            if number % 10 == 9:  # a campaign that is cut off has counted something
                print(json.dumps({"calls": done, **counts}), file=sys.stderr, flush=True)
    print(json.dumps(counts), file=sys.stderr)
    return problems


if __name__ == "__main__":
    sys.exit(bool(main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)))
