"""One launch from end to end: bind, evaluate the file's own <<<…>>>, run, and judge the product."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from tilewise.algebra.semiring import Semiring
from tilewise.engines.simt.check.binding import Bound, Seed, Shape, bind
from tilewise.engines.simt.check.judge import cost_findings, judge
from tilewise.engines.simt.check.loading import (
    Loaded,
    compile_entry,
    here,
    launches_of,
    redefine,
    template_values,
)  # fmt: skip
from tilewise.engines.simt.check.roles import (
    assign_matrices,
    matrix_struct,
    member_role,
    role_by_name,
    size_by_name,
    strides_of,
    three_sizes,
    two_sizes,
)  # fmt: skip
from tilewise.engines.simt.check.wording import word
from tilewise.engines.simt.compile.dataflow import DataFlow
from tilewise.engines.simt.compile.kernel import TILE_NAMES, Compiler
from tilewise.engines.simt.frontend import ctype
from tilewise.engines.simt.frontend.ctype import Scalar
from tilewise.engines.simt.frontend.syntax import Function
from tilewise.engines.simt.host.host_values import struct_value
from tilewise.engines.simt.host.launch_site import HostRun, LaunchSite, LaunchValue
from tilewise.engines.simt.limits import Limits
from tilewise.engines.simt.machine.collector import Collector
from tilewise.engines.simt.machine.costs import Costs
from tilewise.engines.simt.machine.execute import Launch, Outcome, check_geometry, execute
from tilewise.engines.simt.machine.findings import Finding, Kind
from tilewise.engines.simt.machine.lanes import Geometry
from tilewise.engines.simt.machine.program import Program
from tilewise.engines.simt.machine.recorder import Recorder
from tilewise.errors import UsageError


@dataclass
class Simulation:
    """What one launch gave."""

    entry: str
    shape: Shape | None
    tile: int | None
    geometry: Geometry
    bound: Bound
    supplied: list[str]
    outcome: Outcome
    findings: list[Finding]
    recorder: Recorder | None
    launch: Launch
    site: LaunchSite | None
    notes: list[str] = field(default_factory=list)


class Prepared:
    """A kernel of a file, compiled, for any number of launches."""

    def __init__(self, loaded: Loaded, function: Function) -> None:
        self.loaded = loaded
        self.function = function
        sites = launches_of(loaded, function)
        self.site = sites[0] if sites else None
        self.first = self._compile()
        self.matrices = assign_matrices(self.first)
        self.constants = self._constant_sizes()

    def _compile(self, launch_template: list[Any] | None = None) -> Program:
        if launch_template is None:
            launch_template = []
            if self.site is not None and self.function.template:
                launch_template = self._host(self.site, {}).template
        template = template_values(self.loaded, self.function, launch_template)
        return compile_entry(self.loaded, self.function, template)

    @property
    def multiplies(self) -> bool:
        return self.matrices is not None

    def _constant_sizes(self) -> dict[str, str]:
        """Sizes that are constants of the file, not parameters: what each means."""
        if self.matrices is None:
            return {}
        parameters = {v.name for v in self.first.parameters}
        walking = dict.fromkeys(self.first.symbols[s] for _, s in self.first.usage)
        names = [
            s for s in walking if isinstance(s, str) and s not in parameters and "." not in s and s not in TILE_NAMES
        ]
        fixed = [s for s in self.first.symbols if isinstance(s, int)]  # rows of `float A[N][N]`
        if not names and fixed:
            names = [n for n, v in self.loaded.integers.items() if v in fixed and n not in TILE_NAMES][:1]
        if not names:
            return {}
        named = {n: size_by_name(n) for n in names}
        if all(named.values()):
            return {n: str(v) for n, v in named.items()}
        letters = [n for n in ("M", "K", "N") if n in self.loaded.integers and n not in names]
        if 1 < len(names) + len(letters) <= 3 and all(n.upper() in ("M", "N", "K") for n in names):
            names += [n for n in letters if n not in names]
        used = strides_of(self.first, self.matrices)
        if len(names) == 3:
            return three_sizes(names, used)
        if len(names) == 2:
            return two_sizes(names, used)
        return {names[0]: "all"} if len(names) == 1 else {}

    def square(self) -> bool:
        """Whether one size stands for all."""
        if self.matrices is None:
            return False
        if "all" in self.constants.values():
            return True
        numbers = [
            v
            for v in self.first.parameters
            if isinstance(v.type, Scalar) and not v.type.floating and v.type is not ctype.BOOL
            if v.name not in TILE_NAMES
        ]
        structs = any(matrix_struct(v.type) is not None for v in self.first.parameters)
        return len(numbers) == 1 and not structs and size_by_name(numbers[0].name) is None

    def for_shape(self, shape: Shape | None) -> tuple[Loaded, Program, dict[str, int]]:
        """The program with the file's constant sizes set to the shape."""
        if shape is None or not self.constants:
            return self.loaded, self.first, {}
        m, k, n = shape
        if "all" in self.constants.values() and not (m == k == n):
            raise UsageError(f"{self.function.name} takes one size for all: the shape must be square, not {m}x{k}x{n}")
        table = {"m": m, "k": k, "n": n, "all": n}
        values = {name: table[meaning] for name, meaning in self.constants.items()}
        self.current = self.with_constants(values)
        return self.current.loaded, self.current.first, values

    def with_constants(self, values: Mapping[str, int]) -> Prepared:
        """The same kernel in the file with some constants changed."""
        fresh = redefine(self.loaded, values)
        function = next(f for f in fresh.file.kernels if f.name == self.function.name)
        return Prepared(fresh, function)

    def passed_constants(self, bound: Bound) -> dict[str, int]:
        """Constants of the file that the launch passes as sizes, with the values they must have."""
        out: dict[str, int] = {}
        if self.site is None:
            return out
        for parameter, name in zip(self.function.parameters, self.site.arguments, strict=False):
            size = bound.sizes.get(parameter.name)
            if size is not None and self.loaded.integers.get(name, size) != size:
                out[name] = size
        return out

    # -- the file's own launch

    def _host(self, site: LaunchSite, forced: dict[str, Any]) -> LaunchValue:
        loaded = self.loaded
        types = Compiler(loaded.source, loaded.file, DataFlow(), loaded.limits, loaded.tile)
        supplied = {n: (ctype.INT, np.int32(loaded.width)) for n in TILE_NAMES if n not in loaded.integers}
        return HostRun(types, loaded.file, forced, supplied).run(site)

    def evaluate_launch(self, bound: Bound) -> LaunchValue | None:
        if self.site is None:
            return None
        forced: dict[str, Any] = {}
        parameters = self.function.parameters
        for parameter, name in zip(parameters, self.site.arguments, strict=False):
            value = bound.arguments.get(parameter.name)
            if name and isinstance(value, np.generic):
                kind = _scalar_of(value)
                if kind is not None:
                    forced[name] = (kind, value)
        if bound.matrices is not None and bound.shape is not None:
            m, k, n = bound.shape
            extents = {"M": (m, k), "N": (k, n), "P": (m, n)}
            for name in [a.split(".")[0] for a in self.site.arguments if a.endswith((".x", ".y"))]:
                role = role_by_name(name.removeprefix("dims").removeprefix("dim").removeprefix("size"))
                if role is not None:  # dimsA.x columns, dimsA.y rows, as the SDK's sample has them
                    forced[f"{name}.x"] = (ctype.UINT, np.uint32(extents[role][1]))
                    forced[f"{name}.y"] = (ctype.UINT, np.uint32(extents[role][0]))
            for role, variable in bound.matrices.items():
                struct = matrix_struct(variable.type)
                if struct is None:
                    continue
                rows, cols = extents[role]
                table = {"rows": rows, "cols": cols, "pitch": cols}
                members = {f.name: table[r] for f in struct.fields if (r := member_role(struct, f.name)) in table}
                value = struct_value(struct, members)
                for name in self._host_names():
                    if role_by_name(name) == role:
                        forced.setdefault(name, value)
                position = [v.name for v in self.first_parameters()].index(variable.name)
                if position < len(self.site.arguments) and self.site.arguments[position]:
                    forced[self.site.arguments[position]] = value
        return self._host(self.site, forced)

    def first_parameters(self) -> list[Any]:
        return self.function.parameters

    def _host_names(self) -> list[str]:
        """Names in the host function that are matrices of it: its parameters and locals of a struct type."""
        assert self.site is not None
        names = [p.name for p in self.site.function.parameters]
        tokens = self.site.function.tokens
        structs = {v.name for v in self.loaded.file.structs.values()} | set(self.loaded.file.typedefs) | {"Matrix"}
        names += [b.text for a, b in pairwise(tokens) if a.text in structs and b.kind == "name"]
        return names

    def clears_output(self, bound_matrices: Any) -> bool:
        """Whether the host sets P before the launch: cudaMemset, or a copy to it from the host."""
        if self.site is None or not bound_matrices:
            return False
        position = [p.name for p in self.function.parameters].index(bound_matrices["P"].name)
        if position >= len(self.site.arguments):
            return False
        name = self.site.arguments[position]
        tokens = self.site.function.tokens
        for i, token in enumerate(tokens):
            if token.text in ("cudaMemset", "cudaMemsetAsync", "cudaMemcpy") and i + 2 < len(tokens):
                if tokens[i + 2].text != name:
                    continue
                words = {t.text for t in tokens[i : i + 30]}
                if token.text != "cudaMemcpy" or "cudaMemcpyHostToDevice" in words:
                    return True
        return False


def _scalar_of(value: Any) -> Scalar | None:
    for type_ in (ctype.INT, ctype.UINT, ctype.LONG, ctype.ULONG, ctype.FLOAT, ctype.DOUBLE):
        if value.dtype == type_.dtype:
            return type_
    return ctype.INT if value.dtype.kind in "iu" else None


def triple(values: Sequence[int] | None, what: str) -> tuple[int, int, int] | None:
    if values is None:
        return None
    parts = [int(v) for v in values]
    if not 1 <= len(parts) <= 3 or min(parts) < 1:
        raise UsageError(f"{what} must be one to three positive numbers, not {tuple(values)}")
    full = parts + [1] * (3 - len(parts))
    return full[0], full[1], full[2]


def simulate(
    prepared: Prepared,
    *,
    shape: Shape | None,
    grid: Sequence[int] | None,
    block: Sequence[int] | None,
    args: Mapping[str, Any],
    seed: Seed,
    limits: Limits,
    record: Any = None,
    checks: bool = True,
    semiring: Semiring | None = None,
) -> Simulation:
    """`record`: None for no events, else "all" or the (by, bx) of the blocks to record. `semiring`: what P is held
    against, plus_times where nothing is said."""
    loaded, program, constants = prepared.for_shape(shape)
    current = prepared if not constants else prepared.current
    zeroed = current.clears_output(prepared.matrices)
    bound = bind(program, shape, args, constants, limits, seed, zeroed, checks, loaded.width)
    passed = current.passed_constants(bound)
    if passed:  # the host hands its own constants to the kernel: the launch must see the sizes asked for
        current = current.with_constants({**constants, **passed})
        loaded, program = current.loaded, current.first
        bound = bind(program, shape, args, constants, limits, seed, zeroed, checks, loaded.width)
    value = current.evaluate_launch(bound)
    notes: list[str] = []
    chosen_grid, chosen_block = triple(grid, "grid"), triple(block, "block")
    site = None
    if value is not None:
        if value.unknown and (chosen_grid is None or chosen_block is None):
            line = current.site.launch.span.line if current.site else 0
            notes.append(f"the launch at line {line} could not be evaluated: {value.unknown}")
        elif chosen_grid is None and chosen_block is None:
            site = current.site
        chosen_grid = chosen_grid or value.grid
        chosen_block = chosen_block or value.block
    width = loaded.width
    guessed = chosen_grid is None
    if chosen_grid is None or chosen_block is None:
        chosen_grid, chosen_block = default_launch(current.function, shape, width, chosen_grid, chosen_block, bound)
    geometry = Geometry(chosen_grid, chosen_block)
    collector = Collector(loaded.source, limits)
    supplied = [f"{name} = {text}" for name, text in program.supplied.items()]
    try:
        check_geometry(geometry)
    except UsageError as error:
        if site is None or not checks:
            raise
        refused = Finding(Kind.LAUNCH, f"this launch fails: {error}", here(site.launch.span, loaded), access="launch")
        refused.count = 1
        refused.hint = "round the grid up, (size + tile - 1) / tile, and keep blocks at 1024 threads or fewer"
        nothing = Launch(program, geometry, bound.arguments, bound.symbols, collector, limits)
        outcome = Outcome({}, Costs(1), [], 0, 0)
        return Simulation(
            program.entry,
            shape,
            loaded.width,
            geometry,
            bound,
            supplied,
            outcome,
            [refused],
            None,
            nothing,
            site,
            notes,
        )
    recorder = watch = None
    if record is not None:
        recorder = Recorder([b.name for b in bound.buffers.values()])
        for i, buffer in enumerate(bound.buffers.values()):
            buffer.index = i
        if record != "all":
            watch = [_linear(geometry, b) for b in record]
    dynamic = value.shared if value is not None else 0
    if not dynamic and any(external for *_, external in program.shared):
        dynamic = 2 * geometry.threads * 8
        notes.append(f"dynamic shared memory: {dynamic} bytes supplied")
    launch = Launch(
        program,
        geometry,
        bound.arguments,
        bound.symbols,
        collector,
        limits,
        dynamic,
        checks,
        checks,
        recorder,
        watch,
    )
    outcome = execute(launch)
    findings = collector.findings()
    if checks:
        launch_place = here(site.launch.span, loaded) if site is not None else None
        findings += judge(bound, program, geometry, loaded.source, launch_place, outcome, semiring)
        findings += cost_findings(outcome.costs, program, loaded.source)
        for finding in findings:
            word(finding, bound)
    made = Simulation(
        program.entry,
        shape,
        loaded.width,
        geometry,
        bound,
        supplied,
        outcome,
        findings,
        recorder,
        launch,
        site,
        notes,
    )
    uncovered = next((f for f in findings if f.kind is Kind.UNCOVERED), None)
    if guessed and uncovered is not None:
        turned = (geometry.grid[1], geometry.grid[0], 1)
        if turned != geometry.grid:  # nothing in the file says which way the grid lies: x may be the row
            again = simulate(
                prepared, shape=shape, grid=turned, block=geometry.block, args=args, seed=seed, limits=limits,
                record=record, checks=checks, semiring=semiring,
            )  # fmt: skip
            if not any(f.kind is Kind.UNCOVERED for f in again.findings):
                again.notes.append("no launch in the file: x is taken over the rows of P")
                return again
        uncovered.hint += "; there is no launch in the file: give --grid and --block-dim if it is launched otherwise"
    return made


def default_launch(
    function: Function, shape: Shape | None, width: int, grid: Any, block: Any, bound: Bound
) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """What covers P where the file does not launch the kernel: tiles of threads, in a row where only x is used."""
    words = [t.text for t in function.tokens]
    used = {f"{a}.{b}" for a, dot, b in zip(words, words[1:], words[2:], strict=False) if dot == "."}
    flat = "threadIdx.y" not in used and "threadIdx.x" in used
    if block is None:
        block = (width * width, 1, 1) if flat else (width, width, 1)
    if grid is None:
        if shape is None or bound.matrices is None:
            raise UsageError(f"{function.name}: say how many blocks to run with --grid X,Y (grid=(x, y))")
        m, _, n = shape
        if flat and "blockIdx.y" not in used:
            grid = (max(1, -(-m * n // max(1, block[0]))), 1, 1)
        else:
            across, down = (width, width) if flat else (block[0], block[1])
            grid = (max(1, -(-n // max(1, across))), max(1, -(-m // max(1, down))), 1)
    return grid, block


def _linear(geometry: Geometry, block: Sequence[int]) -> int:
    parts = [int(b) for b in block]
    by, bx = parts[-2], parts[-1]
    bz = parts[0] if len(parts) == 3 else 0
    gx, gy, gz = geometry.grid
    if not (0 <= bx < gx and 0 <= by < gy and 0 <= bz < gz):
        raise UsageError(f"there is no block ({by}, {bx}): the grid has {gy} x {gx} blocks")
    return (bz * gy + by) * gx + bx
