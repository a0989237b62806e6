"""The claim on a kernel that multiplies matrices: what its parameters mean gives the sizes and the arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from tilewise.emulator.check.binding import Shape, element_of
from tilewise.emulator.check.roles import assign_sizes, matrix_struct, member_role, role_by_name
from tilewise.emulator.check.simulate import AtShape, Simulation, builtins_used, simulate
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.packed_body import tokens_of
from tilewise.emulator.prove.arithmetic import Geometry
from tilewise.emulator.prove.claim import Claim, Given
from tilewise.emulator.prove.host_effects import path_of
from tilewise.emulator.prove.launches import Host
from tilewise.emulator.prove.symbols import limits_of
from tilewise.emulator.prove.terms import ONE, TRUE, ZERO, Cond, Poly, at_most, within
from tilewise.emulator.prove.values import (
    Fields,
    Int,
    Nothing,
    NotModelled,
    Obligation,
    Pointer,
    Real,
    Ref,
    Region,
    Value,
)
from tilewise.emulator.sema.symbol_table import Environment
from tilewise.errors import TilewiseError

LARGEST = 4096  # elements of a side that the emulator runs


@dataclass
class ProductClaim(Claim):
    """A kernel that multiplies matrices: what its parameters mean gives every length that the host does not."""

    extents: dict[str, Poly] = field(default_factory=dict)  # m, k, n

    def _read(self) -> Geometry:
        if self.prepared.matrices is None:
            raise NotModelled("what the parameters are is not known", self._line)
        self._sizes()
        self._arrays()
        geometry = self._geometry()
        self._transposed()
        for parameter in self.prepared.function.parameters if not self.prepared.constants else ():
            if parameter.name in self.meanings:
                low, high = limits_of(cast("types.Scalar", self._type_of(parameter)))
                fits = within(Poly.of(low), self.size(self.meanings[parameter.name]), Poly.of(high + 1))
                self.host_ranges.append(Obligation(TRUE, fits, self._line, parameter.name, id(parameter)))
        return geometry

    # -- sizes and arrays

    def _sizes(self) -> None:
        prepared = self.prepared
        assert prepared.matrices is not None
        meanings = dict(prepared.constants)
        if not meanings:
            found = assign_sizes(prepared.program, prepared.matrices, {})
            if found is None:
                raise NotModelled("what the sizes mean is not known", self._line)
            meanings = found
        self.meanings = meanings
        named = {meaning: name for name, meaning in reversed(meanings.items())}
        for role in ("m", "k", "n"):
            name = named.get("all") or named.get(role) or role
            if prepared.constants:
                if name not in prepared.loaded.integers:
                    raise NotModelled(f"the size {role} is not known", self._line)
                self.extents[role] = Poly.of(name)
                self.symbols.fixed[name] = prepared.loaded.integers[name]
                self.notes.append(f"{name} = {prepared.loaded.integers[name]}")
            else:
                free = name not in meanings or name in (named.get("all"), named.get(role))
                self.extents[role] = Poly.of(name if free else f"{name}'")
        if not prepared.constants:
            self._equal_sizes()
        symbols = dict.fromkeys(s for p in self.extents.values() for s in p.symbols)
        self.names = [s for s in symbols if s not in self.symbols.fixed]
        self.symbols.sizes = list(self.names)
        self.symbols.launch |= symbols.keys()
        self.notes = list(dict.fromkeys(self.notes))

    def _equal_sizes(self) -> None:
        """One variable of the host passed for two sizes: they are the same there."""
        site = self.prepared.site
        if site is None or self.given is not None:
            return
        first: dict[str, str] = {}
        for parameter, name in zip(self.prepared.function.parameters, site.arguments, strict=False):
            role = {"ldM": "k", "ldN": "n", "ldP": "n"}.get(meaning := self.meanings.get(parameter.name, ""), meaning)
            if name and role in self.extents:
                other = first.setdefault(name, role)
                merged, into = self.extents[role], self.extents[other]
                self.extents = {r: into if p == merged else p for r, p in self.extents.items()}

    def size(self, meaning: str) -> Poly:
        fixed = {"one": ONE, "off": ZERO, "tile": Poly.of(self.prepared.loaded.width)}
        role = {"ldM": "k", "ldN": "n", "ldP": "n", "all": "n"}.get(meaning, meaning)
        return fixed[meaning] if meaning in fixed else self.extents[role]

    def _arrays(self) -> None:
        m, k, n = (self.extents[r] for r in "mkn")
        assert self.prepared.matrices is not None
        for role, variable in self.prepared.matrices.items():
            rows, columns = {"M": (m, k), "N": (k, n), "P": (m, n)}[role]
            dtype, cells = element_of(variable)
            if cells != 1:
                raise NotModelled(f"{variable.name} holds vectors", self._line)
            unit = int(dtype.itemsize if hasattr(dtype, "itemsize") else dtype().itemsize)
            self.regions[variable.name] = Region(variable.name, "global", unit, rows * columns, rows, columns)

    def _transposed(self) -> None:
        """Matrices that lie transposed, as `check` reads them from a run with three different sizes."""
        if len(self.names) < 3 or self.prepared.matrices is None:
            return
        width = self.prepared.loaded.width
        values = dict(zip(self.names, (width + 1, 2 * width - 1 + (width == 2), width + 3), strict=True))
        try:
            done = self.run(values)
        except TilewiseError:
            return
        reading = done.bound.reading if done is not None else None
        for role in reading.transposed if reading is not None else ():
            region = self.regions[self.prepared.matrices[role].name]
            region.rows, region.columns = region.columns, region.rows
            self.notes.append(f"{region.name} transposed")

    @property
    def output(self) -> Region | None:
        """P, where it is not an operand as well."""
        matrices = self.prepared.matrices or {}
        return self.regions[matrices["P"].name] if "P" in matrices else None

    def argument(self, parameter: tree.Parameter, type_: types.Type) -> Value:
        region = self.regions.get(parameter.name)
        if isinstance(type_, types.Pointer) and region is not None:
            return Pointer(Ref(region, ZERO, type_.to))
        if region is not None:
            return self._struct(parameter.name, region)
        if isinstance(type_, types.Scalar) and type_.floating:
            return Real()
        if isinstance(type_, types.Scalar) and parameter.name in self.meanings:
            return Int(self.size(self.meanings[parameter.name]), type_)
        raise NotModelled(f"what {parameter.name} is", parameter.line or self._line)

    def _struct(self, name: str, region: Region) -> Fields:
        variable = next(v for v in self.prepared.program.parameters if v.name == name)
        struct = matrix_struct(variable.type)
        if (
            struct is None
            or not isinstance(variable.type, types.Record)
            or region.rows is None
            or region.columns is None
        ):
            raise NotModelled(f"{name} is more than a matrix", self._line)
        parts: list[tuple[str, Value]] = []
        for f in struct.members:
            role = member_role(struct, f.name)
            if role == "data" and isinstance(f.type, types.Pointer):
                parts.append((f.name, Pointer(Ref(region, ZERO, types.FLOAT if region.unit == 4 else types.DOUBLE))))
            elif role is not None:
                parts.append((f.name, Int(region.rows if role == "rows" else region.columns, types.INT)))
        return Fields(tuple(parts))

    # -- the launch

    def _geometry(self) -> Geometry:
        site = self.prepared.site
        if self.given is not None:
            return self._given(self.given)
        if site is None:
            return self._covering()
        self.launched = f"launched as in line {site.launch.line}"
        forced: dict[str, Poly] = {}
        for parameter, name in zip(self.prepared.function.parameters, site.arguments, strict=False):
            meaning = self.meanings.get(parameter.name)
            if name and meaning is not None:
                forced[name] = self.size(meaning)
        words = {t.text for t in tokens_of(self.prepared.function.tokens or [])} | {
            t.origin for t in tokens_of(self.prepared.function.tokens or [])
        }
        for name in forced.keys() & self.prepared.loaded.integers.keys():
            if name in words:
                raise NotModelled(f"{name} is a constant of the kernel and a size of the launch", self._line)
        loaded = self.prepared.loaded
        host = Host(loaded.table, Environment(scope=site.function.scope), self.symbols, None, sizes=forced)
        host.structs = self._structs()
        grid, block, self.dynamic = host.at(site)
        self.host_ranges = host.events.ranges
        self.path, notes = host.checked(self.names)
        self.notes += notes
        self.most = host.most
        self._allocations(host)
        for parameter, argument in zip(self.prepared.function.parameters, site.launch.arguments, strict=False):
            meaning = self.meanings.get(parameter.name)
            if meaning is not None and self.prepared.matrices and not self.prepared.constants:
                passed = host.whole(host.rvalue(argument), argument).poly
                if passed != self.size(meaning):
                    raise NotModelled(
                        f"the launch passes another number than {meaning} for {parameter.name}", site.launch.line
                    )
        return Geometry(block, grid)

    def _structs(self) -> dict[str, Fields]:
        """Matrices of the host function, by the role of their names."""
        matrices = self.prepared.matrices or {}
        found = {}
        for name in self.prepared.host_names():
            variable = matrices.get(role_by_name(name) or "")
            if variable is not None and matrix_struct(variable.type) is not None:
                value = self._struct(variable.name, self.regions[variable.name])
                found[name] = Fields(tuple(p for p in value.parts if isinstance(p[1], Int)))
        return found

    def _allocations(self, host: Host) -> None:
        """Arrays are as long as the host allocates them; what is one array there is one here."""
        site = self.prepared.site
        assert site is not None
        seen: dict[Region, Region] = {}
        for parameter, node in zip(self.prepared.function.parameters, site.launch.arguments, strict=False):
            region = self.regions.get(parameter.name)
            if region is None:
                continue
            own = self.argument(parameter, self._type_of(parameter))
            name = path_of(node)
            passed: Value | None = host.rvalue(node)
            if isinstance(own, Fields) and isinstance(passed, Fields):
                self._passed(name, passed, own, site.launch.line)
                member = next(member for member, value in own.parts if isinstance(value, Pointer))
                passed, name = passed.get(member) or Pointer(host.array(f"{name}.{member}")), f"{name}.{member}"
            if not isinstance(passed, Pointer) or passed.place.offset != ZERO:
                what = f"{name} is assigned on the host" if name and passed == Nothing() else (
                    f"{parameter.name} is not the start of an array")  # fmt: skip
                raise NotModelled(what, site.launch.line)
            there = passed.place.region
            self.regions[parameter.name] = seen.setdefault(there, region)
            if there not in host.allocated:
                continue
            assert region.length is not None
            if there.length is None or there.length != region.length * region.unit:
                region.length = self.symbols.divided(there.length, region.unit)[0] if there.length is not None else None
                self.notes.append(f"{parameter.name} as allocated in line {host.allocated[there]}")

    def _passed(self, name: str, there: Fields, own: Fields, line: int) -> None:
        """The sizes in a struct of the host must be those of the matrix."""
        for member, value in own.parts:
            if isinstance(value, Int):
                given = there.get(member)
                if not isinstance(given, Int) or given.poly != value.poly:
                    raise NotModelled(f"what {name}.{member} is at the launch", line)

    def _given(self, given: Given) -> Geometry:
        block = self._in_blocks(given)
        if given.grid is not None:
            x, y, z = (Poly.of(g) for g in given.grid)
            return Geometry(block, (x, y, z))
        return Geometry(block, self._over(given.cols, given.rows))

    def _over(self, across: int, down: int) -> tuple[Poly, Poly, Poly]:
        m, n = self.extents["m"], self.extents["n"]
        self.launched += f", the grid covers {self.prepared.matrices['P'].name if self.prepared.matrices else 'P'}"
        grid_x = self.symbols.divided(n + (across - 1), across)[0]
        return grid_x, self.symbols.divided(m + (down - 1), down)[0], ONE

    def _covering(self) -> Geometry:
        """As `check` launches a kernel that the file does not."""
        used = builtins_used(self.prepared.function)
        flat = "threadIdx.y" not in used and "threadIdx.x" in used
        width = self.prepared.literal_tile() or self.prepared.loaded.width
        block = (width * width, 1, 1) if flat else (width, width, 1)
        given = Given(block, width, width)
        if flat and "blockIdx.y" not in used:
            self.launched = f"in blocks of {block[0]} threads, the grid covers P"
            cells = self.extents["m"] * self.extents["n"]
            grid = self.symbols.divided(cells + (block[0] - 1), block[0])[0], ONE, ONE
            return Geometry((Poly.of(block[0]), ONE, ONE), grid)
        return self._given(given)

    # -- what is assumed, and the same launch in the emulator

    def _arrays_within(self, elements: int) -> list[Cond]:
        parts: list[Cond] = []
        for one in ("mk", "kn", "mn"):
            rows, columns = self.extents[one[0]], self.extents[one[1]]
            cells = rows * columns
            parts += [within(ONE, cells, Poly.of(elements + 1)), at_most(rows, cells), at_most(columns, cells)]
        return parts

    def shape(self, values: dict[str, int]) -> Shape:
        m, k, n = (self.symbols.at(self.extents[r], values) for r in "mkn")
        return m, k, n

    def run(self, values: dict[str, int]) -> Simulation | None:
        shape = self.shape(values)
        if max(shape) > LARGEST:
            return None
        grid: Sequence[int] | None = None
        block: Sequence[int] | None = None
        if self.given is not None:
            block, grid = self.given.block, self.given.grid
            grid = grid or (-(-shape[2] // self.given.cols), -(-shape[0] // self.given.rows))
        return simulate(self.prepared, AtShape(shape, grid, block), seed=0, limits=self.limits)
