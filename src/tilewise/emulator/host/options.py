"""Limits and permissions of a program's run."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import find_spec

START = 10.0  # seconds that starting a process may take on a busy machine
CLOCK = 4  # default limit of wall-clock time, as a multiple of the limit of processor time

# whether main may run without a sandbox, if the system has none; OFF is for tests
REQUIRED, WHERE_POSSIBLE, OFF = "required", "where possible", "off"
NATIVE, WASM = "native", "wasm"  # what the program is compiled to


def strangers_target() -> str:
    """What programs of unknown origin are compiled to: WebAssembly where wasmtime is installed."""
    return WASM if find_spec("wasmtime") is not None else NATIVE


@dataclass
class Options:
    seconds: float = 20.0  # of the process, without the time in which it was ready and had no core; may be inf
    wall: float | None = None  # wall-clock seconds; None: CLOCK times `seconds`
    interpret: float = 4.0  # seconds of interpreted kernels, with every check; later launches run compiled
    memory: int = 2 << 30
    output: int = 64 << 20
    card: str = "t4"
    real_time: bool = False
    folder: str = "."
    writable: list[str] = field(default_factory=list)
    defines: dict[str, str] = field(default_factory=dict)
    include: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)  # further files of the program
    sandbox: str = REQUIRED
    target: str = NATIVE
    progress: bool = False  # stderr is a terminal: show progress there
    lenient: bool = False  # of a program that does not compile, run what does, for its launches (`running.build`)
    compile_only: bool = False  # report whether the program compiles, and do not run it
    other_copies: bool = False  # of known headers that the project has too (`translation_unit.Copies`)

    @property
    def clock(self) -> float:
        """The limit of wall-clock seconds, which includes waiting for input and for a core."""
        return max(CLOCK * self.seconds, self.seconds + START) if self.wall is None else self.wall

    @property
    def too_long(self) -> str:
        return f"the program took longer than {self.seconds:g} s: --limit-time raises it"
