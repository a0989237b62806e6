"""The kernel as WebAssembly in record mode, one module for each TILE_WIDTH: the page runs it at other shapes.

What a launch needs is found as formulas of the shape (m, k, n): each argument, grid and block are evaluated at several
shapes, and a formula must hold for all of them. A kernel for which there is none is not computed in the page."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from tilewise.algebra.builtin import find_semiring
from tilewise.emulator import budget
from tilewise.emulator.check.loading import choose, dimensions_of, load
from tilewise.emulator.check.prepared import Prepared
from tilewise.emulator.check.simulate import AtShape, Setting, requested_setting, run
from tilewise.emulator.host.lower.call import PREFIX
from tilewise.emulator.host.runtime.recorded_kernel import RecordedKernel
from tilewise.emulator.host.target.standalone import Standalone
from tilewise.emulator.limits import DEFAULT, Limits
from tilewise.emulator.machine.leaves import placed_leaves
from tilewise.emulator.machine.memory import Pointer as At
from tilewise.emulator.parse.types import Array, Record, innermost
from tilewise.errors import EngineError, TilewiseError, UsageError
from tilewise.teaching.page.export import title_of
from tilewise.teaching.page.payload import packed
from tilewise.teaching.page.variants import BARRIER, Drop
from tilewise.teaching.trace import TraceData
from tilewise.teaching.trace.launch import launch_for
from tilewise.teaching.trace.rungs import RungText, is_rung, rung_text

LARGEST = 64  # of each of m, k and n in the page
ENTRIES = 14 * LARGEST**3  # of the log: TILE_WIDTH 2 takes 12 for each product
SHAPES = ((5, 7, 11), (13, 6, 4), (17, 23, 19), (3, 3, 3), (32, 16, 48), (64, 61, 57))
SQUARES = tuple((side,) * 3 for side in (5, 7, 13, 17, 32, 61))
FLAGS = "tilewise_drops"
TILES = (2, 4, 8, 16, 32)
# functions of numbers that script/machine.js has
NUMERIC = frozenset({
    "fabs", "fmax", "fmin", "fmod", "fma", "rint", "round", "ceil", "floor", "trunc", "sqrt", "cbrt", "hypot", "pow",
    "exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan",
    "atan2", "sinh", "cosh", "tanh",
})  # fmt: skip


def modules_of(
    kernel: str | Path, made: TraceData, drops: Sequence[Drop], settings: Mapping[str, Any], until: float
) -> dict[str, Any] | None:
    """What the page needs to compute runs of this kernel; None where it cannot. Widths whose module is not begun by
    `until` (time.monotonic) are left out."""
    run = made.run
    if run.shape is None or max(run.shape) > LARGEST or settings.get("args"):
        return None
    modules: dict[int | None, dict[str, Any]] = {}
    for tile in dict.fromkeys((run.tile, *TILES)):
        if modules and (run.tile is None or time.monotonic() > until):
            break
        try:
            modules[tile] = computed(kernel, made.source, run.entry, drops, tile, settings)
        except budget.Exhausted:
            raise
        except TilewiseError:
            if not modules:
                return None
    first = modules[run.tile]
    distinct = [tile for tile, one in modules.items() if tile == run.tile or one["block"] != first["block"]]
    return {
        "name": title_of(made).split(" · ")[0], "source": made.source, "shape": list(run.shape), "largest": LARGEST,
        "binding": list(run.binding), "square": first["square"], "tiles": distinct,
        "modules": [packed(modules[tile]) for tile in distinct],
        "drops": [asdict(drop) for drop in drops], "line": first["line"],
    }  # fmt: skip


def with_flags(text: str, drops: Sequence[Drop]) -> str:
    """The kernel's text with each check and barrier under a bit of the variable FLAGS: it is left out if that is set.
    One line is added before the first."""
    lines = text.split("\n")
    for bit, drop in sorted(enumerate(drops), key=lambda one: (one[1].line, -one[1].first)):
        line = lines[drop.line - 1]
        what = line[drop.first : drop.last]
        left_out = f"({FLAGS} & {1 << bit})"
        if drop.kind == BARRIER:
            made = f"if (!{left_out}) {what}"
        elif drop.instead.startswith("if"):
            made = f"if ({left_out} || {what[what.index('(') :]})"
        elif drop.instead:
            made = f"{left_out} || ({what.strip()}) "
        else:
            made = f"if (!{left_out}) {what}"
        lines[drop.line - 1] = line[: drop.first] + made + line[drop.last :]
    return "\n".join([f"__device__ int {FLAGS};", *lines])


def computed(
    kernel: str | Path, source: str, entry: str, drops: Sequence[Drop], tile: int | None, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """The module of a kernel at a tile width, with what the page must know to launch it; raises TilewiseError where the
    page cannot compute it."""
    limits = settings.get("limits") or DEFAULT
    ring = find_semiring(settings.get("semiring") or "plus_times")
    if ring.name != "plus_times":
        raise UsageError(f"the page compares P with the product, not with {ring.name}")
    rung = None
    if is_rung(kernel):
        rung = rung_text(str(kernel), tile, ring, settings.get("dtype") or "float32")
    text = with_flags(source if rung is None else rung.text, drops)
    loaded = load(text, settings.get("defines"), None if rung is not None else tile, limits)
    one = Prepared(loaded, choose(loaded, entry)[0])
    if not one.multiplies:
        raise UsageError(f"{entry} does not multiply matrices")
    square = one.square()
    launches = [_setting(one, rung, shape, settings, limits) for shape in (SQUARES if square else SHAPES)]
    if _reads_otherwise(launches[0]):
        raise EngineError("P is another product of M and N, as `check` reads it")
    target = Standalone()  # its code is short: optimising it more takes longer than it saves
    dimensions = dimensions_of(loaded, one.function, one.template)
    made = RecordedKernel(loaded.table, one.function, one.template, dimensions, target, ENTRIES)
    assert target.module is not None
    for function in target.module.functions:
        name = function.name.removeprefix(PREFIX)
        if name != function.name and name.removesuffix("f") not in NUMERIC:
            raise EngineError(f"the page has no {name}")
    drops_at = made.flags(FLAGS) if drops else 0  # before the image of the memory is taken
    dynamic = _same([s.dynamic or 0 for s in launches], "the dynamic shared memory depends on the shape")
    found = {
        "line": launches[0].site.launch.span.line - 1 if launches[0].site is not None else 0,
        "square": square, "grid": _grid(launches), "drops": drops_at,
        "block": _same([s.geometry.block for s in launches], "the block depends on the shape"),
        "dynamic": dynamic,
        "arguments": _arguments(made, launches), "leads": _leads(launches), "matrices": _matrices(launches),
        **_machine(made, target, dynamic),
    }  # fmt: skip
    target.release()
    return found


def _setting(one: Prepared, rung: RungText | None, shape: Any, settings: Mapping[str, Any], limits: Limits) -> Setting:
    launch = AtShape(shape, *launch_for(rung, shape, settings.get("grid"), settings.get("block")))
    made = requested_setting(one, launch, None, limits)
    if made.prepared is not one:
        raise EngineError("a size of this kernel is a constant of its text")
    return made


def _reads_otherwise(setting: Setting) -> bool:
    """Whether `check` finds P right as another product of M and N: transposed, say."""
    run(setting)
    return setting.bound.reading is not None


def _same(values: Iterable[Any], message: str) -> Any:
    first, *others = values
    if any(other != first for other in others):
        raise EngineError(message)
    return first


def _formula(values: Sequence[int], settings: Sequence[Setting], divisors: Iterable[int] = (1,)) -> list[int]:
    """[i, d]: the ith of (1, m, k, n, m · n), divided by d and rounded up; [0, v] is the number v."""
    if len(set(values)) == 1:
        return [0, int(values[0])]
    shapes = np.array([s.bound.shape for s in settings])
    measures = [*shapes.T, shapes[:, 0] * shapes[:, 2]]
    for divisor in divisors:
        for i, measure in enumerate(measures, 1):
            if (-(-measure // divisor) == values).all():
                return [i, divisor]
    raise EngineError("a size of its launch is no known function of the shape")


def _grid(settings: Sequence[Setting]) -> list[list[int]]:
    """Blocks are as wide as their threads, or a multiple of that."""
    x, y, _ = settings[0].geometry.block
    likely = dict.fromkeys([x, y, x * y, *(x << i for i in range(1, 6)), *(y << i for i in range(1, 6)), 1])
    divisors = [*likely, *range(1, 1025)]
    return [_formula(part, settings, divisors) for part in zip(*(s.geometry.grid for s in settings), strict=True)]


def _leads(settings: Sequence[Setting]) -> dict[str, list[int]]:
    """Leading dimensions by name."""
    return {name: _formula([s.bound.symbols[name] for s in settings], settings) for name in settings[0].bound.symbols}


def _arguments(made: RecordedKernel, settings: Sequence[Setting]) -> list[list[Any]]:
    """Of each number and pointer of the arguments: its address, its type, and a formula, a number or M, N, P."""
    out: list[list[Any]] = []
    for name, type_, offset in zip(made.names, made.parameters, made.offsets, strict=True):
        values = [s.bound.arguments[name] for s in settings]
        leaves = placed_leaves(type_) if isinstance(type_, Record) else [(type_, 0)]
        parts = zip(*values, strict=True) if isinstance(type_, Record) else [values]
        for (leaf, at), part in zip(leaves, parts, strict=True):
            out.append([made.arguments + offset + at, *_argument(leaf, list(part), settings)])
    return out


def _argument(leaf: Any, values: list[Any], settings: Sequence[Setting]) -> list[Any]:
    if isinstance(values[0], At):
        roles = [next((role for role in "MNP" if s.bound.of(role) is v.memory), "") for v, s in
                 zip(values, settings, strict=True)]  # fmt: skip
        if not roles[0] or any(int(v.offset) for v in values):
            raise EngineError("a pointer of its arguments is no matrix")
        return ["pointer", _same(roles, "a pointer is a different matrix at each shape")]
    kind = np.asarray(values[0]).dtype
    if kind.kind == "f":
        return [kind.name, _same([float(v) for v in values], "a factor depends on the shape")]
    return [kind.name, _formula([int(v) for v in values], settings)]


def _matrices(settings: Sequence[Setting]) -> dict[str, Any]:
    """M, N and P: name, dtype, and whether the host clears it."""
    out = {}
    for role in "MNP":
        buffer = settings[0].bound.of(role)
        assert buffer is not None
        if buffer.matrix is None or buffer.matrix.cells != 1 or buffer.data.dtype.kind not in "iuf":
            raise EngineError(f"the elements of {buffer.name} are no numbers")
        out[role] = {"name": buffer.name, "dtype": buffer.data.dtype.name, "zeroed": buffer.initialised is None}
    return out


def _machine(made: RecordedKernel, target: Standalone, dynamic: int) -> dict[str, Any]:
    """The module, its memory, and what its log means."""
    module, memory, recording = target.module, made.memory, made.recording
    assert module is not None
    return {
        "binary": _text(module.binary), "pages": target.pages, "stack": target.stack,
        "imports": [f.name for f in module.functions],
        "image": [[address, _text(data)] for address, data in target.image()],
        "log": recording.log, "entries": recording.entries, "capacity": recording.capacity,
        "arguments_at": made.arguments,
        "gridDim": made.address_of("gridDim"), "blockDim": made.address_of("blockDim"),
        "device": memory.device_start, "device_bytes": memory.size // 2 - memory.layout.guard, "shift": memory.shift,
        "sites": [[int(s.kind), s.line - 1, s.statement, s.name, s.array, s.dimension, int(s.from_global), s.column]
                  for s in recording.sites],
        "shared": [[name, address, *_extent(type_, dynamic)] for name, type_, address in recording.shared],
    }  # fmt: skip


def _extent(type_: Any, dynamic: int) -> list[Any]:
    """Bytes of a cell, and the lengths of the dimensions; those of `extern` memory as long as the launch says."""
    lengths, cell = [], innermost(type_)
    while isinstance(type_, Array):
        lengths.append(type_.length)
        type_ = type_.of
    if lengths and not lengths[0]:
        lengths[0] = dynamic // (cell.size * prod(lengths[1:]))
    return [cell.size, lengths]


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
