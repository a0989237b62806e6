"""To see it: run CUDA C with no GPU and get back what every thread did (`trace`), or every fault (`check`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any, cast

import numpy as np

from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.semiring import Semiring
from tilewise.engines.simt import budget
from tilewise.engines.simt.check.adversary import demonstrate
from tilewise.engines.simt.check.binding import Seed
from tilewise.engines.simt.check.loading import choose, load, uses_shared
from tilewise.engines.simt.check.prepared import Prepared
from tilewise.engines.simt.check.simulate import Simulation, simulate
from tilewise.engines.simt.limits import DEFAULT, Limits
from tilewise.engines.simt.machine.events import EventKind, Events, empty_events
from tilewise.engines.simt.machine.findings import Basis, Finding, Severity
from tilewise.errors import UsageError
from tilewise.tracing.rungs import RungText, is_rung, rung_text
from tilewise.tracing.strict_json import strict

Shape = tuple[int, int, int]
SCHEMA = 1


@dataclass(frozen=True)
class Run:
    """One launch: what was bound to what, what it counted, what it found."""

    file: str
    entry: str
    shape: Shape | None
    tile: int | None
    grid: tuple[int, int, int]  # (x, y, z), as CUDA writes it
    block: tuple[int, int, int]
    binding: tuple[str, ...]  # one line an argument: "d_M: M, 3x3 float"
    supplied: tuple[str, ...]  # names the file did not define and that were supplied: "TILE_WIDTH = 2"
    counters: Mapping[str, int]
    findings: tuple[Finding, ...]
    output: str = ""  # what printf wrote
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False)  # bound arrays afterwards
    origin: str = "given"  # or "own", as main launches it, or "probe", a shape that finds bugs
    reading: str = ""  # under which other reading P is right

    @property
    def faults(self) -> tuple[Finding, ...]:
        """What was found wrong; not what hangs on a launch that nobody wrote."""
        return tuple(f for f in self.findings if f.severity is Severity.FAULT and f.basis is not Basis.UNDECIDED)

    def to_json(self) -> dict[str, Any]:
        return {
            "file": self.file,
            "entry": self.entry,
            "shape": list(self.shape) if self.shape else None,
            "tile": self.tile,
            "grid": list(self.grid),
            "block": list(self.block),
            "binding": list(self.binding),
            "supplied": list(self.supplied),
            "counters": dict(self.counters),
            "findings": [f.to_json() for f in self.findings],
            "output": self.output,
            "origin": self.origin,
            "reading": self.reading,
        }


@dataclass(frozen=True, repr=False)
class Report:
    """What `check` gives back: one `Run` a launch, and all findings of all of them together. `grounds` says for each
    kernel what its verdict stands on, `not_judged` which kernels could not be run and why."""

    file: str
    runs: tuple[Run, ...]
    grounds: Mapping[str, str] = field(default_factory=dict)
    not_judged: Mapping[str, str] = field(default_factory=dict)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(f for run in self.runs for f in run.findings)

    @property
    def faults(self) -> tuple[Finding, ...]:
        return tuple(f for run in self.runs for f in run.faults)

    @property
    def seen(self) -> tuple[Finding, ...]:
        """Faults of the run that was asked for, of the program's own, or of every run there can be."""
        return tuple(f for f in self.faults if f.basis is Basis.SEEN)

    @property
    def at_other_sizes(self) -> tuple[Finding, ...]:
        """Faults that only sizes show which are not the program's own."""
        return tuple(f for f in self.faults if f.basis is Basis.OTHER_SIZES)

    @property
    def undecided(self) -> tuple[Finding, ...]:
        """What would be a fault under a launch that nobody wrote."""
        return tuple(f for f in self.findings if f.severity is Severity.FAULT and f.basis is Basis.UNDECIDED)

    @property
    def ok(self) -> bool:
        """Nothing wrong was seen; `clean` is stricter: nor would anything be at other sizes."""
        return not self.seen

    @property
    def clean(self) -> bool:
        return not self.faults

    def to_json(self) -> dict[str, Any]:
        made = {
            "schema": SCHEMA,
            "file": self.file,
            "ok": self.ok,
            "clean": self.clean,
            "grounds": dict(self.grounds),
            "not_judged": dict(self.not_judged),
            "runs": [r.to_json() for r in self.runs],
        }
        return cast(dict[str, Any], strict(made))

    def __repr__(self) -> str:
        from tilewise.tracing.report_text import report_text

        return report_text(self)

    def _repr_html_(self) -> str:
        """In a notebook: the text that `tilewise check` prints."""
        return f"<pre>{escape(repr(self))}</pre>"


@dataclass(frozen=True)
class Matrix:
    """M, N or P of a launch: its name in `Trace.names`, and what it held afterwards (the launch changes only P)."""

    name: str
    values: np.ndarray = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        rows, cols = self.values.shape
        values = [None if v != v else v for v in self.values.astype(np.float64).ravel().tolist()]
        return {"name": self.name, "rows": rows, "cols": cols, "values": values}


@dataclass(frozen=True, repr=False)
class Trace:
    """A launch with its events. `names` are the arrays and registers that the event columns number."""

    run: Run
    events: Events
    names: tuple[str, ...]
    blocks: tuple[int, ...]  # linear numbers of the blocks recorded
    source: str = ""  # the text that ran; events name its lines
    matrices: Mapping[str, Matrix] = field(default_factory=dict)  # M, N and P of a matmul-like binding
    shared: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # shared arrays as they are declared
    failing: Trace | None = None  # the same launch in an order of threads that gives a wrong P, where one was found
    wrong: tuple[tuple[int, int], ...] = ()  # of a failing order: the cells of P that are not the product

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.run.findings

    @property
    def counters(self) -> Mapping[str, int]:
        return self.run.counters

    @property
    def phases(self) -> int:
        """How many phases the recorded blocks went through."""
        return int(self.events.phase.max()) + 1 if len(self.events) else 0

    def text(self, width: int = 80, phases: tuple[int, ...] | None = None, lang: str = "en") -> str:
        """Threads × phases, tiles, partial sums, barriers and counters, in `width` columns."""
        from tilewise.tracing.table import draw

        return draw(self, width, phases, lang)

    def __repr__(self) -> str:
        return self.text()

    def to_html(self, lang: str = "en") -> str:
        """The page to step through, as the text of one self-contained HTML file."""
        return str(self._page(lang).html)

    def to_svg(self, phase: int = 0, block: int | None = None, lang: str = "en") -> str:
        """One phase of a recorded block as a picture."""
        return str(self._page(lang).svg(phase, block))

    def _repr_html_(self) -> str:
        return str(self._page("en")._repr_html_())

    def _page(self, lang: str) -> Any:
        import tilewise  # the page stands above this room and is reached by its public name

        return tilewise.explore(self, lang=lang)

    def to_json(self) -> dict[str, Any]:
        """Everything, versioned; what views are drawn from. Every reader of JSON takes it: see `strict_json`."""
        made = {
            "schema": SCHEMA,
            **self.run.to_json(),
            "blocks": list(self.blocks),
            "names": list(self.names),
            "source": self.source,
            "matrices": {role: matrix.to_json() for role, matrix in self.matrices.items()},
            "shared": {name: list(dims) for name, dims in self.shared.items()},
            "events": self.events.to_json(),
        }
        return cast(dict[str, Any], strict(made))


def trace(
    kernel: str | Path,
    *,
    shape: Shape | None = None,
    tile: int | None = None,
    entry: str | None = None,
    grid: Sequence[int] | None = None,
    block: Sequence[int] | None = None,
    args: Mapping[str, Any] | None = None,
    defines: Mapping[str, str | int] | None = None,
    semiring: str | Semiring = "plus_times",
    dtype: str = "float32",
    blocks: Sequence[tuple[int, int]] | str = ((0, 0),),
    seed: Seed = None,
    adversarial: bool = False,
    limits: Limits = DEFAULT,
) -> Trace:
    """Run the kernel in a file (or in a text that contains `__global__`, or a rung of the ladder by its name) and
    record what its threads do.

    `shape` is (m, k, n); where nothing is said, one with two phases and an edge for the kernel's tile. `tile` overrides
    TILE_WIDTH, BLOCK_SIZE and kin. `grid` and `block` are (x, y, z) and default to the launch in the file, else to what
    covers P. `args` gives parameters that are not bound by themselves: numbers, or NumPy arrays (copied; the copies
    afterwards are in `.run.arrays`).
    `blocks` are the (by, bx) to record, or "all". Operands count 1, 2, 3, … unless `seed` asks for random ones;
    with "apart" N goes on where M ends, so that no value belongs to both.
    P is held against the product over `semiring`; `dtype` is for rungs, whose text is written for it.
    `adversarial` runs the threads one at a time as well, and notes on a race what P holds then; the trace of the order
    that gives a wrong P is in `.failing`.

    >>> tw.trace("tiled_edges", shape=(3, 3, 3), tile=2).counters["fills"]
    28
    """
    with budget.within(limits):
        return _trace(
            kernel, shape, tile, entry, grid, block, args, defines, semiring, dtype, blocks, seed, adversarial, limits
        )


def _trace(
    kernel: str | Path, shape: Shape | None, tile: int | None, entry: str | None, grid: Sequence[int] | None,
    block: Sequence[int] | None, args: Mapping[str, Any] | None, defines: Mapping[str, str | int] | None,
    semiring: str | Semiring, dtype: str, blocks: Sequence[tuple[int, int]] | str, seed: Seed, adversarial: bool,
    limits: Limits,
) -> Trace:  # fmt: skip
    ring = find_semiring(semiring)
    rung, kernel = _rung(kernel, tile, ring, dtype)
    prepared = _prepare(kernel, entry, defines, tile, limits)
    chosen = _first_tiled(prepared)
    if shape is None and chosen.multiplies:
        shape = shape_to_see(chosen.literal_tile() or chosen.loaded.width)
    size = as_shape(shape)
    grid, block = launch_for(rung, size, grid, block)
    done = simulate(
        chosen, shape=size, grid=grid, block=block, args=copied(args), seed=seed, limits=limits,
        record=blocks if isinstance(blocks, str) else tuple(blocks), semiring=ring,
    )  # fmt: skip
    failing = demonstrate(done) if adversarial and done.recorder is not None else None
    run = run_of(chosen, done)
    if done.recorder is None:  # the launch itself fails
        return Trace(run, empty_events(), (), ())
    numbers = tuple(range(done.geometry.blocks)) if done.launch.watch is None else tuple(done.launch.watch)
    matrices = _matrices(done)
    shared = {name: tuple(dims) for name, _, dims, external in done.launch.program.shared if not external}
    made = Trace(
        run, done.recorder.events(), tuple(done.recorder.names), numbers, chosen.loaded.source.text, matrices, shared
    )
    if failing is None or "P" not in matrices:
        return made
    wrong = {**matrices, "P": Matrix(matrices["P"].name, failing.held)}
    order = replace(made, events=failing.events, names=failing.names, matrices=wrong, wrong=failing.wrong)
    return replace(made, failing=order)


def _matrices(done: Simulation) -> dict[str, Matrix]:
    bound = done.bound
    if bound.matrices is None:
        return {}
    made = {}
    for role in ("M", "N", "P"):
        buffer, values = bound.of(role), bound.arrays.get(role)
        if buffer is not None and values is not None and values.ndim == 2 and values.dtype.kind != "V":
            made[role] = Matrix(buffer.name, values)
    return made


def check(
    kernel: str | Path,
    *,
    shape: Shape | Sequence[Shape] | None = None,
    tile: int | None = None,
    entry: str | None = None,
    grid: Sequence[int] | None = None,
    block: Sequence[int] | None = None,
    args: Mapping[str, Any] | None = None,
    defines: Mapping[str, str | int] | None = None,
    semiring: str | Semiring = "plus_times",
    dtype: str = "float32",
    seed: int = 0,
    adversarial: bool = True,
    limits: Limits = DEFAULT,
) -> Report:
    """Every fault of the kernel, by line and thread. Without `shape`, several shapes that find bugs are run:
    rectangular, not multiples of the tile, one smaller than a tile; on random data.

    >>> tw.check("tiled_edges").ok
    True
    >>> sorted({str(fault.kind) for fault in tw.check("tiled", shape=(3, 3, 3), tile=2).faults})
    ['out-of-bounds', 'race', 'silent-overrun', 'wrong-product']
    """
    from tilewise.tracing.checking import Asked, judged

    with budget.within(limits):
        ring = find_semiring(semiring)
        rung, kernel = _rung(kernel, tile, ring, dtype)
        loaded = load(kernel, defines, tile, limits)
        asked = Asked(shape, grid, block, dict(args or {}), seed, adversarial, limits, ring, rung, entry)
        return judged(loaded, asked)


def _rung(kernel: str | Path, tile: int | None, ring: Semiring, dtype: str) -> tuple[RungText | None, str | Path]:
    if not is_rung(kernel):
        return None, kernel
    rung = rung_text(str(kernel), tile, ring, dtype)
    return rung, rung.text


def launch_for(
    rung: RungText | None, shape: Shape | None, grid: Sequence[int] | None, block: Sequence[int] | None
) -> tuple[Sequence[int] | None, Sequence[int] | None]:
    """A rung's blocks cover the part of P that its geometry says; a file has its own launch."""
    if rung is None or shape is None:
        return grid, block
    return grid or rung.grid(shape), block or rung.geometry.block


def as_shape(shape: Any) -> Shape | None:
    if shape is None:
        return None
    parts = tuple(int(x) for x in shape)
    if len(parts) != 3 or min(parts) < 1:
        raise UsageError(f"a shape is three positive numbers (m, k, n), not {tuple(shape)}")
    return parts


def _prepare(kernel: str | Path, entry: str | None, defines: Any, tile: int | None, limits: Limits) -> list[Prepared]:
    loaded = load(kernel, defines, tile, limits)
    return [Prepared(loaded, function) for function in choose(loaded, entry)]


def _first_tiled(prepared: list[Prepared]) -> Prepared:
    """Of several kernels, the first that multiplies through shared memory; else the first that multiplies."""
    multiply = [p for p in prepared if p.multiplies]
    for one in multiply:
        if uses_shared(one.function):
            return one
    return multiply[0] if multiply else prepared[0]


def copied(args: Mapping[str, Any] | None) -> dict[str, Any]:
    return {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in (args or {}).items()}


def shape_to_see(tile: int) -> Shape:
    """Two phases, the second with an edge: what one shape can show."""
    side = max(2, 2 * tile - 1)
    return side, side, side


def run_of(prepared: Prepared, done: Simulation, origin: str = "given") -> Run:
    counters = dict(done.outcome.counters)
    counters["phases"] = done.outcome.phases
    for buffer in done.bound.buffers.values():
        counters[f"loads of {buffer.name}"] = buffer.loads
        if buffer.stores:
            counters[f"stores to {buffer.name}"] = buffer.stores
    if done.bound.matrices is not None and done.shape is not None:
        m, k, n = done.shape
        counters["loads without tiles"] = 2 * m * k * n
    costs = done.outcome.costs
    counters["shared passes"] = sum(c.units for c in costs.shared.values())
    counters["shared requests"] = sum(c.requests for c in costs.shared.values())
    counters["global sectors"] = sum(c.units for c in costs.globals.values())
    counters["global requests"] = sum(c.requests for c in costs.globals.values())
    counters["split warps"] = sum(b[1] for b in costs.branches.values())
    order = {Severity.FAULT: 0, Severity.COST: 1, Severity.NOTE: 2}
    findings = sorted(done.findings, key=lambda f: (order[f.severity], f.line, str(f.kind)))
    return Run(
        prepared.loaded.source.name, done.entry, done.shape, done.tile, done.geometry.grid, done.geometry.block,
        tuple(done.bound.lines), tuple(done.supplied + done.notes), counters, tuple(findings),
        "".join(done.outcome.output), dict(done.bound.arrays), origin, _reading(done),
    )  # fmt: skip


def _reading(done: Simulation) -> str:
    bound = done.bound
    if bound.reading is None or bound.matrices is None:
        return ""
    return bound.reading.words({role: v.name for role, v in bound.matrices.items()})


__all__ = ["EventKind", "Events", "Finding", "Limits", "Report", "Run", "Trace", "check", "trace"]
