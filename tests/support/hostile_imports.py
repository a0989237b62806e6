"""Functions of the runtime with hostile arguments, as a program calls them that has escaped the compiler's checks.

Addresses in and around every kind of memory, sizes at every edge. Whatever a function does is fine but for a signal,
more memory than MOST_MEMORY, or a single call that the watch of a program could not end.

    python tests/support/hostile_imports.py CALLS [SEED]     counts as a last line of JSON
"""

from __future__ import annotations

import inspect
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tilewise.emulator.host import running
from tilewise.emulator.host.options import WASM, Options
from tilewise.emulator.host.runtime.session import FUNCTIONS, Session

PROGRAM = """#include <cstdio>
__global__ void k(int* a) { a[0] = 1; }
int main() { int* d; cudaMalloc(&d, 4); k<<<1, 1>>>(d); cudaFree(d); printf("x"); return 0; }
"""
SECONDS, UNINTERRUPTIBLE = 2.0, 10.0  # a call is interrupted, as the watch would; how late that may be
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
NOT_CALLED = {"rt_trap"}  # by programs


class Ended(BaseException):
    """The program would end here."""


class Late(BaseException):
    pass


def session_of(folder: Path) -> Session:
    path = folder / "program.cu"
    path.write_text(PROGRAM)
    session, _ = running.build(path, Options(target=WASM, memory=1 << 28), lambda document: None)

    def end(*_: object, **__: object) -> None:
        raise Ended

    session.finish = end  # type: ignore[method-assign]
    os._exit = end  # type: ignore[assignment]
    # the broker in the parent opens nothing
    session.files = SimpleNamespace(request=lambda *_: (-1, 2), **dict.fromkeys(("open", "remove"), lambda *_: None))
    return session


class Values:
    def __init__(self, session: Session, draw: random.Random) -> None:
        m = session.memory
        self.draw = draw
        self.blocks = [
            m.allocate(1 << 12, "malloc", 1).address, m.static(4096, "g", False), m.stack_start,
            m.allocate(1 << 12, "cudaMalloc", 1, device=True, host=False).address,
        ]  # fmt: skip
        self.around = [m.base, m.base + m.size, m.base + m.shift, m.device_start, m.line_address, m.epoch_address]

    def one(self) -> int:
        draw, kind = self.draw, self.draw.random()
        if kind < 0.35:
            return draw.choice(self.blocks) + draw.choice([0, 0, 8, -8, 4095, draw.randrange(-5000, 9000)])
        if kind < 0.6:
            return draw.randrange(-5, 70)
        return draw.choice(self.around if kind < 0.8 else EDGES) + draw.randrange(-16, 16)


def main(calls: int, seed: int) -> list[str]:
    draw, counts, problems = random.Random(seed), Counter[str](), []

    def late(*_: object) -> None:
        raise Late

    signal.signal(signal.SIGALRM, late)
    with tempfile.TemporaryDirectory() as folder:
        session = session_of(Path(folder))
        values = Values(session, draw)
        names = sorted(set(FUNCTIONS) - NOT_CALLED)
        for _ in range(calls):
            name = draw.choice(names)
            parameters = [p.kind for p in inspect.signature(FUNCTIONS[name]).parameters.values()][1:]
            given: list[Any] = [values.one() for kind in parameters if kind is not inspect.Parameter.VAR_POSITIONAL]
            given += [values.one() for _ in range(draw.randrange(5)) if len(given) != len(parameters)]
            began = time.monotonic()
            signal.setitimer(signal.ITIMER_REAL, SECONDS)
            try:
                FUNCTIONS[name](session, *given)
                counts["returned"] += 1
            except BaseException as error:
                counts[type(error).__name__] += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            took = time.monotonic() - began
            taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
            if took > UNINTERRUPTIBLE or taken > MOST_MEMORY:
                problems.append(f"{name}{tuple(given)} took {took:.1f} s, {taken >> 20} MiB")
                break
    print(json.dumps(counts), file=sys.stderr)
    return problems


if __name__ == "__main__":
    found = main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    print("\n".join(found))
    sys.stdout.flush()
    sys.exit(bool(found))
