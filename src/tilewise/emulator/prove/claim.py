"""For what a proof holds: the sizes as symbols, the arrays they give, and the launch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from tilewise.emulator.check.prepared import Prepared
from tilewise.emulator.check.simulate import Simulation
from tilewise.emulator.limits import Limits
from tilewise.emulator.parse import tree, types
from tilewise.emulator.prove.arithmetic import Geometry
from tilewise.emulator.prove.launches import Calls
from tilewise.emulator.prove.symbols import BLOCK, THREAD, Symbols
from tilewise.emulator.prove.terms import TRUE, ZERO, Cond, Poly, at_most, below, both, either, negate, within
from tilewise.emulator.prove.thread import Thread
from tilewise.emulator.prove.values import Obligation, Region, Value
from tilewise.emulator.sema.symbol_table import Environment

GRID_Y, MOST_THREADS, MOST_Z = 65_535, 1024, 64
ASSERTED = "where its asserts hold"


@dataclass(frozen=True)
class Given:
    """A launch that is not the file's: blocks of so many threads, each over rows and columns of P; or a grid."""

    block: tuple[int, int, int]
    rows: int = 0
    cols: int = 0
    grid: tuple[int, int, int] | None = None


@dataclass(frozen=True)
class Bound:
    """The largest size, and the most elements of an array."""

    size: int
    elements: int


BOUNDS = (Bound(1 << 30, (1 << 31) - 1), Bound(1 << 24, 1 << 30), Bound(1 << 20, 1 << 28), Bound(1 << 15, 1 << 26))


@dataclass
class Claim(ABC):
    prepared: Prepared
    limits: Limits
    given: Given | None = None
    calls: Calls = ()  # that lead to the function of the launch
    symbols: Symbols = field(default_factory=Symbols)
    names: list[str] = field(default_factory=list)  # the symbols that are sizes
    regions: dict[str, Region] = field(default_factory=dict)
    host_ranges: list[Obligation] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    launched: str = ""
    most: int = 1 << 30
    dynamic: Poly | None = None
    path: Cond = TRUE  # what the host has checked before the launch

    def __post_init__(self) -> None:
        self.geometry = self._read()
        for names, ends in ((THREAD, self.geometry.block), (BLOCK, self.geometry.grid)):
            for name, end in zip(names, ends, strict=True):
                self.symbols.facts[name] = [within(ZERO, Poly.of(name), end)]

    @abstractmethod
    def _read(self) -> Geometry:
        """Sizes, arrays and launch."""

    @abstractmethod
    def argument(self, parameter: tree.Parameter, type_: types.Type) -> Value:
        """What the launch passes."""

    @abstractmethod
    def _arrays_within(self, elements: int) -> list[Cond]:
        """What is assumed of the arrays' lengths."""

    @abstractmethod
    def shape(self, values: dict[str, int]) -> tuple[int, int, int] | None:
        """m, k and n at these sizes, where the kernel multiplies matrices."""

    @abstractmethod
    def run(self, values: dict[str, int]) -> Simulation | None:
        """The same launch in the emulator; None where it is too large for that."""

    @property
    def output(self) -> Region | None:
        """The matrix of which every cell is to be stored to."""
        return None

    @property
    def _line(self) -> int:
        return self.prepared.function.line

    def _type_of(self, parameter: tree.Parameter) -> types.Type:
        return types.bare(self.prepared.loaded.table.resolve(parameter.type, Environment(dict(self.prepared.template))))

    def _in_blocks(self, given: Given) -> tuple[Poly, Poly, Poly]:
        self.launched = f"in blocks of {' x '.join(str(b) for b in given.block if b > 1) or 1} threads"
        if given.grid is not None:
            self.launched += f", grid {' x '.join(map(str, given.grid))}"
        one, two, three = (Poly.of(b) for b in given.block)
        return one, two, three

    def assumed(self, bound: Bound) -> Cond:
        top = Poly.of(min(bound.size, self.most))
        parts = [within(Poly.of(1), Poly.of(name), top + 1) for name in self.names]
        parts += self._arrays_within(bound.elements)
        for block, grid in zip(self.geometry.block, self.geometry.grid, strict=True):
            if block.constant is None:  # threads of the grid: at most 1,024 a block
                most = Poly.of(MOST_THREADS)
                parts.append(either(below(most, block), below(grid, ZERO), at_most(block * grid, most * grid)))
        return both(*parts, *(at_most(axis, Poly.of(GRID_Y)) for axis in self.geometry.grid[1:]))

    def refused(self) -> list[Cond]:
        """Launches that the device does not take: no block or thread, too many threads."""
        x, y, z = self.geometry.block
        found = [at_most(axis, ZERO) for axis in (*self.geometry.grid, x, y, z)]
        found += [at_most(Poly.of(MOST_THREADS + 1), x * y * z), at_most(Poly.of(MOST_Z + 1), z)]
        return [both(self.path, part) for part in found]

    def thread(self, wrapping: set[int]) -> Thread:
        """The kernel executed by one generic thread."""
        function, loaded = self.prepared.function, self.prepared.loaded
        env = Environment(bindings=dict(self.prepared.template), scope=function.scope)
        made = Thread(loaded.table, env, self.symbols, self.geometry, wrapping=wrapping, dynamic=self.dynamic)
        made.state.path = both(self.path, negate(either(*self.refused())))
        made.scopes.append({})  # not of the functions that it calls
        for parameter in function.parameters:
            type_ = types.bare(made.resolve(parameter.type))
            made.declare(parameter.name, type_, self.argument(parameter, type_))
        made.run(function)
        if made.assumes and ASSERTED not in self.notes:
            self.notes.append(ASSERTED)
        return made

    def sentence(self, bound: Bound) -> str:
        names = ", ".join(self.names)
        top = min(bound.size, self.most)
        sizes = f"for every {names} from 1 to {top:,}" if names else "for " + ", ".join(self.notes or ["this launch"])
        tile = f"TILE = {self.prepared.loaded.width}" if self.prepared.loaded.own_tile is not None else ""
        notes = [n for n in self.notes if names]
        lengths = [r.length for r in self.regions.values() if r.length is not None]
        lengths += [self.symbols.quotients[s][0] for p in lengths for s in p.symbols & self.symbols.quotients.keys()]
        least = "from 0 to" if any(c < 0 for p in lengths for c in p.terms.values()) else "at most"  # no negative one
        parts = [sizes, f"{least} {bound.elements:,} elements an array", tile, self.launched, *notes]
        return ", ".join(p for p in parts if p)
