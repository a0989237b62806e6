"""The claim on any other kernel: its numbers and arrays are what the program passes, the program's sizes symbols.

A size is an integer of the host that a number of the kernel or the length of an array is made of, and that the file has
a number for or reads from elsewhere. What the block is made of, and what the kernel itself names, stays what it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from tilewise.emulator.check.own_binding import Memory, OwnLaunch, UnknownLaunch
from tilewise.emulator.check.simulate import Simulation, simulate
from tilewise.emulator.host.launch_site import LaunchSite, host_body, host_functions
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.packed_body import tokens_of
from tilewise.emulator.prove.arithmetic import Geometry
from tilewise.emulator.prove.claim import Claim
from tilewise.emulator.prove.launches import Calls, Host
from tilewise.emulator.prove.symbols import Symbols, limits_of
from tilewise.emulator.prove.terms import ZERO, Cond, Poly, at_most, within
from tilewise.emulator.prove.values import Fields, Int, NotModelled, Pointer, Real, Ref, Region, Truth, Value
from tilewise.emulator.sema.symbol_table import Environment, SymbolTable

MOST_CALLS, MOST_CHAINS = 3, 4
LARGEST = 1 << 18  # threads that the emulator runs


@dataclass
class ProgramClaim(Claim):
    passed: dict[str, Value] = field(default_factory=dict)  # by parameter
    numbers: dict[str, int] = field(default_factory=dict)  # what the sizes are in the file

    def _read(self) -> Geometry:
        if self.given is not None and self.given.grid is not None:
            return self._by_parameters()
        site = self.prepared.site
        if site is None:
            raise NotModelled("nothing in the file launches it", self._line)
        fixed = {name for node in self._held(site) for name in names_in(node)} | self._device_words()
        while True:
            fixed = self._behind(fixed)
            self.symbols = Symbols()
            host = self._host(site, fixed)
            grid, block, self.dynamic = host.at(site, self.calls)
            self._arguments(host, site)
            data, held = self._sizes(host), self._reached([*block, self.dynamic])
            wrong = {n.rstrip("'") for n, known in host.named.items()
                     if known is not None and (n in held or n not in data)}  # fmt: skip
            if not wrong - fixed:
                break
            fixed |= wrong
        return self._claimed(host, site, Geometry(block, grid), data | held | self._reached(list(grid)))

    def _claimed(self, host: Host, site: LaunchSite, geometry: Geometry, used: set[str]) -> Geometry:
        self.names = [n for n in host.named if n in used]
        self.symbols.sizes = list(self.names)
        self.numbers = {n: k for n in self.names if (k := host.named[n]) is not None}
        self.host_ranges = host.events.ranges
        self.path, notes = host.checked(self.names)
        self.notes += notes
        self.most = host.most
        self.notes += [f"{name} = {number}" for name, number in host.constants.items()]
        self.launched = f"launched as in line {site.launch.line}"
        if self.calls:
            self.launched += ", called from line " + ", ".join(str(call.line) for _, call in reversed(self.calls))
        return geometry

    def _host(self, site: LaunchSite, fixed: set[str]) -> Host:
        loaded = self.prepared.loaded
        first = self.calls[0][0] if self.calls else site.function
        host = Host(loaded.table, Environment(scope=first.scope), self.symbols, None, fixed=fixed)
        mentioned = {t.text for macro in loaded.macros.values() for t in macro.body}
        host.macros = {n: v for n, v in loaded.integers.items() if n in loaded.macros and n not in mentioned}
        return host

    # -- constants that stay what they are

    def _held(self, site: LaunchSite) -> Iterator[object]:
        """Where a constant shapes the kernel itself: template arguments, and the types of the file."""
        entities = self.prepared.loaded.table.entities
        yield site.launch.kernel
        yield from (item.type for item in entities.variables.values())
        yield from (f.type for classes in entities.classes.values() for c in classes if not c.library for f in c.fields)
        yield from entities.aliases.values()

    def _device_words(self) -> set[str]:
        entities = self.prepared.loaded.table.entities
        found: set[str] = set()
        own = [f for functions in entities.functions.values() for f in functions if not f.library]
        for function in (*own, *entities.kernels):
            if {"__device__", "__global__"} & set(function.specifiers):
                tokens, own_names = tokens_of(function.tokens or []), {p.name for p in function.parameters}
                found |= {t.text for t in tokens} - own_names | {t.origin for t in tokens}
        return found & (entities.variables.keys() | self.prepared.loaded.macros.keys())

    def _behind(self, fixed: set[str]) -> set[str]:
        """With the names that those are made of."""
        loaded, site = self.prepared.loaded, self.prepared.site
        assert site is not None
        functions = [f for f, _ in self.calls] + [site.function]
        bodies = [host_body(loaded.table, f) for f in functions]
        made = [v for body in bodies for v in tree.walk(body) if isinstance(v, tree.Variable)]
        made += [v for v in loaded.table.entities.variables.values() if v.init is not None]
        while True:
            more = {name for v in made if v.name in fixed for name in names_in([v.init, v.arguments])}
            more |= {t.text for n in fixed if n in loaded.macros for t in loaded.macros[n].body}
            if more <= fixed:
                return fixed
            fixed = fixed | more

    # -- what the launch passes

    def _sizes(self, host: Host) -> set[str]:
        """The symbols of the numbers that the kernel gets, and of the arrays' lengths."""
        polys = [r.length for r in self.regions.values() if r.length is not None]
        for value in self.passed.values():
            parts = [part for _, part in value.parts] if isinstance(value, Fields) else [value]
            polys += [p.poly if isinstance(p, Int) else p.place.offset for p in parts if isinstance(p, Int | Pointer)]
        return self._reached(polys)

    def _reached(self, polys: list[Poly]) -> set[str]:
        return {s for poly in polys for s in self.symbols.behind(poly)}

    def _arguments(self, host: Host, site: LaunchSite) -> None:
        self.regions, self.passed = {}, {}
        arrays: dict[Region, Region] = {}
        parameters = self.prepared.function.parameters
        given = [*site.launch.arguments, *(p.default for p in parameters[len(site.launch.arguments) :])]
        for parameter, node in zip(parameters, given, strict=False):
            type_ = self._type_of(parameter)
            value = host.attempt(node)
            if isinstance(type_, types.Pointer):
                value = self._array(host, parameter, type_, value, arrays, site.launch.line)
            elif isinstance(type_, types.Scalar):
                value = self._number(host, parameter, type_, value, node)
            elif not isinstance(value, Fields) or any(not isinstance(part, Int) for _, part in value.parts):
                raise NotModelled(f"{parameter.name} is {type_}", parameter.line or self._line)
            self.passed[parameter.name] = value

    def _number(
        self, host: Host, parameter: tree.Parameter, type_: types.Scalar, value: Value, node: tree.Node
    ) -> Value:
        if type_.floating:
            return Real()
        if isinstance(value, Int | Truth | Real):
            value = host.converted(value, type_, node)
        if isinstance(value, Int | Truth):
            return value
        symbol = host.any_value(parameter.name, type_)
        self.notes.append(f"any {parameter.name}")
        return Int(symbol, type_)

    def _array(
        self, host: Host, parameter: tree.Parameter, type_: types.Pointer, value: Value, arrays: dict[Region, Region],
        line: int,
    ) -> Pointer:  # fmt: skip
        """The array behind a pointer, in scalars of the type that the kernel has for it."""
        unit = host.laid(type_.to, line)[0] if type_.to is not types.VOID else 0
        if not isinstance(value, Pointer) or not unit:
            raise NotModelled(f"which array {parameter.name} is", line)
        there, offset = value.place.region, value.place.offset
        region = arrays.get(there)
        if region is None:
            region = arrays[there] = Region(parameter.name, "global", unit, None)
            if there.length is not None:
                region.length = self.symbols.divided(there.length, unit)[0]
            self.regions[parameter.name] = region
        if region.unit != unit or any(c % unit for c in offset.terms.values()):
            raise NotModelled(f"{parameter.name} is an array of two types", line)
        return Pointer(Ref(region, self.symbols.divided(offset, unit)[0], type_.to))

    def _by_parameters(self) -> Geometry:
        """A launch that is given: every integer of the kernel is a size, and arrays have any length."""
        assert self.given is not None
        assert self.given.grid is not None
        for parameter in self.prepared.function.parameters:
            type_ = self._type_of(parameter)
            if isinstance(type_, types.Scalar) and type_.integral and type_.kind != "bool":
                self.names.append(parameter.name)
                self.symbols.facts[parameter.name] = [at_most(Poly.of(parameter.name), Poly.of(limits_of(type_)[1]))]
                self.passed[parameter.name] = Int(Poly.of(parameter.name), type_)
            elif isinstance(type_, types.Scalar):
                self.passed[parameter.name] = Real()
            elif isinstance(type_, types.Pointer) and isinstance(type_.to, types.Scalar) and type_.to.size:
                region = self.regions[parameter.name] = Region(parameter.name, "global", type_.to.size, None)
                self.passed[parameter.name] = Pointer(Ref(region, ZERO, type_.to))
            else:
                raise NotModelled(f"what {parameter.name} is", parameter.line or self._line)
        self.symbols.sizes = list(self.names)
        self.symbols.launch |= set(self.names)
        x, y, z = (Poly.of(g) for g in self.given.grid)
        return Geometry(self._in_blocks(self.given), (x, y, z))

    def argument(self, parameter: tree.Parameter, type_: types.Type) -> Value:
        return self.passed[parameter.name]

    def _arrays_within(self, elements: int) -> list[Cond]:
        return [within(ZERO, r.length, Poly.of(elements + 1)) for r in self.regions.values() if r.length is not None]

    # -- the same launch in the emulator

    def shape(self, values: dict[str, int]) -> None:
        return None

    def launch(self, values: dict[str, int]) -> OwnLaunch | None:
        """None where it has a value that only the host would know, or two names of one array."""
        try:
            sides = [self.symbols.at(p, values) for p in (*self.geometry.grid, *self.geometry.block)]
            shared = self.symbols.at(self.dynamic, values) if self.dynamic is not None else 0
            arguments = [self._value(p, values) for p in self.prepared.function.parameters]
        except (KeyError, NotModelled):
            return None
        if int(np.prod([max(1, s) for s in sides])) > LARGEST or not self.symbols.holds(self.path, values):
            return None
        (gx, gy, gz), (bx, by, bz) = sides[:3], sides[3:]
        line = self.prepared.site.launch.line if self.prepared.site is not None else self._line
        return OwnLaunch((gx, gy, gz), (bx, by, bz), shared, line, arguments, self.prepared.site)

    def run(self, values: dict[str, int]) -> Simulation | None:
        own = self.launch(values)
        if own is None:
            return None
        try:
            return simulate(self.prepared, own, seed=0, limits=self.limits)
        except UnknownLaunch:
            return None

    def _value(self, parameter: tree.Parameter, values: dict[str, int]) -> object:
        value = self.passed[parameter.name]
        if isinstance(value, Int):
            return self.symbols.at(value.poly, values)
        if isinstance(value, Truth):
            return int(self.symbols.holds(value.cond, values))
        if isinstance(value, Real):
            return 1.0
        own = self.regions.get(parameter.name)
        if (
            isinstance(value, Pointer)
            and value.place.region is own
            and value.place.offset == ZERO
            and own.length is not None
        ):
            length = self.symbols.at(own.length, values)
            if length >= 0:
                return Memory(length * own.unit, filled=True)
        raise NotModelled(f"{parameter.name} is not the start of an array of its own", self._line)


def chains(site: LaunchSite, table: SymbolTable) -> list[Calls]:
    """Every way from a function that nobody calls to the function of the launch."""
    bodies = [(f, host_body(table, f)) for f in host_functions(table)]
    values = [v.init for v in table.entities.variables.values()]

    def to(function: tree.Function, depth: int) -> Iterator[Calls]:
        named = [(f, part) for f, body in bodies for part in tree.walk(body) if _names(part, function.short)]
        direct = {id(part.function) for f, part in named if isinstance(part, tree.Call) and f is not function}
        calls = [(f, part) for f, part in named if isinstance(part, tree.Call) and id(part.function) in direct]
        beside = [part for _, part in named if not isinstance(part, tree.Call) and id(part) not in direct]
        if depth == MOST_CALLS or not calls:
            yield ()
            return
        if beside or any(_names(part, function.short) for part in tree.walk(values)):
            yield ()  # by its address, by an object or by itself
        for caller, call in calls:
            yield from ((*before, (caller, call)) for before in to(caller, depth + 1))

    found = list(islice(to(site.function, 0), MOST_CHAINS + 1))
    return found if len(found) <= MOST_CHAINS else [()]


def _names(part: tree.Node, function: str) -> bool:
    """Whether it is a call of the function, or another mention of it."""
    named = part.function if isinstance(part, tree.Call) and isinstance(part.function, tree.Name) else part
    return isinstance(named, tree.Name | tree.Member) and named.name.rpartition("::")[2] == function


def names_in(nodes: object) -> set[str]:
    """Names and macros below."""
    found: set[str] = set()
    for part in tree.walk(nodes):
        if isinstance(part, tree.Name | tree.TypeName):
            found.add(part.name)
        elif isinstance(part, tree.Number) and part.origin:
            found.add(part.origin)
    return found
