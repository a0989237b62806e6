"""What a run may take and touch."""

from __future__ import annotations

from dataclasses import dataclass, field

START = 10.0  # seconds that a busy machine may take to start a process
CLOCK = 4  # a busy machine gives a program part of a core: so many times its processor time may pass by the clock

# whether main may run where the system has no sandbox for it; OFF is for tests of the checks that remain
REQUIRED, WHERE_POSSIBLE, OFF = "required", "where possible", "off"


@dataclass
class Options:
    """What a run may take and touch."""

    seconds: float = 20.0  # from the start of its process to its end, without those in which it had no core; may be inf
    wall: float | None = None  # by the clock; CLOCK times `seconds` where nobody says
    interpret: float = 4.0  # seconds of kernels with every check; what is beyond runs as compiled code
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
    progress: bool = False  # stderr is a terminal: what the program is doing is shown there
    lenient: bool = False  # where the program does not compile, what does is run for its launches: see `running.build`
    other_copies: bool = False  # of headers known by name that the project has too: see translation_unit

    @property
    def clock(self) -> float:
        """The seconds that may pass: it may wait for input, and for its turn on a busy machine."""
        return max(CLOCK * self.seconds, self.seconds + START) if self.wall is None else self.wall

    @property
    def too_long(self) -> str:
        return f"the program took longer than {self.seconds:g} s: --limit-time raises it"
