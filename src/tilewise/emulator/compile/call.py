"""Calls: built-in functions, barriers, atomics, printf, constructors."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from tilewise.emulator.compile.closures import ClosureCompiler
from tilewise.emulator.compile.intrinsics import COMMON, CONVERSIONS, REAL
from tilewise.emulator.compile.operand import Closure, Operand
from tilewise.emulator.machine import warp
from tilewise.emulator.machine.atomics import ATOMICS, atomic
from tilewise.emulator.machine.barrier import GRID, barrier, warp_barrier
from tilewise.emulator.machine.context import Context
from tilewise.emulator.machine.findings import Kind
from tilewise.emulator.machine.formatting import formatted
from tilewise.emulator.machine.leaves import dtype_of
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Record, Scalar, Type
from tilewise.emulator.source.source import Span

BUILT_IN = {
    "__builtin_inff": np.float32("inf"),
    "__builtin_inf": np.float64("inf"),
    "__builtin_nanf": np.float32("nan"),
}

TEXT = "text"  # the type of a string argument of printf; its value is an index


def tagged(type_: Any, value: Any) -> tuple[int, int]:
    """A value for `formatting.formatted`: the tag of its promoted type, and its bits."""
    if type_ is TEXT:
        return 5, value
    if type_.floating:
        return 4, struct.unpack("<Q", struct.pack("<d", float(value)))[0]
    type_ = types.promote(type_)
    return (2 if type_.size == 8 else 0) + (not type_.signed), int(value) & (1 << 64) - 1


class CallCompiler(ClosureCompiler):
    waits_for_grid: bool
    copies_asynchronously: bool

    def call(self, node: tree.Call) -> Operand:
        return self.dereferenced(self.call_result(node), node)

    def call_result(self, node: tree.Call) -> Operand:
        function = node.function
        if isinstance(function, tree.Member):
            return self.method_call(node, function)
        if not isinstance(function, tree.Name) or (function.owner is None and self.find(function.name) is not None):
            return self.call_value(node)
        if function.owner is not None:
            return self.static_call(node, function)
        this = self.find("this")
        if this is not None and isinstance(this.type, Record) and this.type.methods_named(function.name):
            member = tree.Member(tree.This(), function.name, True)
            own = self.calls.setdefault(id(node), node.updated(function=member))
            return self.method_call(own, own.function if isinstance(own.function, tree.Member) else member)
        name, functions = self.table.functions_named(function.name, self.env.scope)
        mine = [f for f in functions if not f.library and (f.tokens is not None or f.body is not None)]
        if mine:
            self.table.require_declared(function.name, functions, function, self.env)
            return self.device_call(node, mine)
        name = name.removeprefix("cuda::").removeprefix("std::")
        known = self.builtin(node, name)
        if known is not None:
            return known
        if name.startswith(("tex", "surf")):  # supported in compiled kernels only
            raise self.refuse("textures are not supported" if name[0] == "t" else "surfaces are not supported", node)
        if name == "__shared_base":  # each __shared__ variable is an array of its own
            raise self.refuse("addresses of shared memory as numbers are not supported", node)
        library = [f for f in functions if f.tokens is not None and "__device__" in f.specifiers]
        if library:
            return self.device_call(node, library)
        host = self.table.entities.refused_functions.get(name)
        because = f" ({host})" if host is not None else ""
        raise self.refuse(f"the function {name} is not known{because}", node)

    def call_value(self, node: tree.Call) -> Operand:
        """A call of a lambda or of an object with operator()."""
        value = self.expr(node.function)
        if isinstance(value.type, Closure):
            return self.after(value.fn, self.closure_call(node, value.type))
        if isinstance(value.type, Record):
            place, before = self.object_place(node.function)
            return self.after(before, self.method(node, value.type, "operator()", None, place))
        raise self.refuse(f"the function {self.text(node.function)} is not known", node)

    def static_call(self, node: tree.Call, function: tree.Name) -> Operand:
        owner = self.resolve(function.owner)
        if not isinstance(owner, Record):
            raise self.refuse(f"{owner} has no function {function.name}", node)
        return self.method(node, owner, function.name, function.arguments, None)

    def builtin(self, node: tree.Call, name: str) -> Operand | None:
        """CUDA's own functions."""
        if name == "__wait" and self.call_site is not None:  # in shipped headers
            return self.wait(self.constant(node.arguments[0]), self.call_site.span)
        if name == "__assert_failed":
            return self.assertion((self.call_site or node).span)
        if name == "__accessed":  # its accesses count by themselves
            return Operand(types.VOID, lambda c: np.int32(0), pure=False)
        if name in ("__async_copy", "__async_commit", "__async_wait", "__async_phase"):  # `run` looks for missing waits
            self.copies_asynchronously = True
            return Operand(types.VOID, lambda c: np.int32(0), pure=False)
        if name == "printf":
            return self.printf(node)
        if (operation := name.removesuffix("_block").removesuffix("_system")) in ATOMICS:
            return self.atomic(node, operation)
        if name in ("__ldg", "__ldcg", "__ldca", "__ldcs") and len(node.arguments) == 1:
            return self.load(self.through(self.expr(node.arguments[0]), node))
        if name in ("__from_lane", "__ballot_sync", "__activemask", "__count_in_block"):
            return self.exchange(node, name)
        if name in BUILT_IN and not node.arguments:
            return self.constant_value(BUILT_IN[name], types.DOUBLE if name == "__builtin_inf" else types.FLOAT)
        if name.startswith("make_") and name[5:] in self.table.entities.classes:
            record = self.resolve(tree.TypeName(name[5:]))
            if isinstance(record, Record) and len(self.table.layout(record).fields) == len(node.arguments):
                return self.construct(record, node.arguments, node)
            return None  # an overload of helper_math.h
        return self.intrinsic(node, name)

    # -- CUDA's functions on numbers

    def intrinsic(self, node: tree.Call, name: str) -> Operand | None:
        real = REAL.get(name) or REAL.get(name.removesuffix("f"))
        count = 1 if name in CONVERSIONS else (COMMON.get(name) or real or (None,))[0]
        if count is None:
            return None
        values = self.arguments(node, name, count)
        if name in CONVERSIONS:
            parameter, result = CONVERSIONS[name]
            return self.converted(self.converted(values[0], parameter, node), result, node)
        kinds = [self.arithmetic(v, a) for v, a in zip(values, node.arguments, strict=True)]
        if name in COMMON:
            type_ = types.promote(kinds[0]) if count == 1 else types.common(*kinds)
            return self.apply(COMMON[name][1 + type_.floating], [type_] * count, type_, values, node)
        assert real is not None
        single = name not in REAL or all(t.floating and t.rank <= types.FLOAT.rank for t in kinds)
        chosen = types.FLOAT if single else types.DOUBLE
        return self.apply(real[1], [chosen] * count, chosen, values, node)

    def apply(
        self, function: Any, kinds: list[Scalar], result: Scalar, values: list[Operand], node: tree.Call
    ) -> Operand:
        ready = [self.converted(v, t, a) for v, t, a in zip(values, kinds, node.arguments, strict=True)]
        fns = [e.fn for e in ready]
        if len(fns) == 1:
            only = fns[0]
            run = lambda c: function(only(c))  # noqa: E731
        elif len(fns) == 2:
            first, second = fns
            run = lambda c: function(first(c), second(c))  # noqa: E731
        else:
            run = lambda c: function(*[f(c) for f in fns])  # noqa: E731
        return self.folded(Operand.of(result, run, *ready), *ready)

    def arguments(self, node: tree.Call, name: str, count: int) -> list[Operand]:
        if len(node.arguments) != count:
            raise self.refuse(f"{name} takes {count} arguments, {len(node.arguments)} are given", node)
        return [self.expr(a) for a in node.arguments]

    # -- synchronisation, atomics, printing

    def exchange(self, node: tree.Call, name: str) -> Operand:
        """What the shipped shuffles, votes and reductions of a warp or block are written with."""
        if name == "__activemask":
            return Operand(types.UINT, lambda c: warp.ballot(c, np.uint32(2**32 - 1), np.bool_(True)), pure=False)
        values = self.arguments(node, name, 1 if name == "__count_in_block" else 2)
        fns = [v.fn if isinstance(v.type, Scalar) else self.converted(v, types.INT, node).fn for v in values]
        if name == "__from_lane":
            return Operand.of(values[0].type, lambda c: warp.from_lane(c, fns[0](c), fns[1](c)), values[0], pure=False)
        if name == "__ballot_sync":
            return Operand(types.UINT, lambda c: warp.ballot(c, fns[0](c), fns[1](c)), pure=False)
        span = (self.call_site or node).span

        def count(c: Context) -> Any:
            barrier(c, span)
            return warp.count_in_block(c, fns[0](c))

        return Operand(types.INT, count, pure=False)

    def wait(self, kind: int, span: Span) -> Operand:
        """A barrier of the block, the grid or a warp."""
        self.waits_for_grid |= kind == GRID

        def run(c: Context) -> Any:
            if kind in (1, GRID):
                barrier(c, span, kind == GRID)
            else:
                warp_barrier(c)
            return np.int32(0)

        return Operand(types.VOID, run, pure=False)

    def atomic(self, node: tree.Call, name: str) -> Operand:
        count, function = ATOMICS[name]
        target, *given = self.arguments(node, name, count)
        place = self.through(target, node)
        if not isinstance(place.type, Scalar):
            raise self.refuse(f"{name} on {place.type} is not supported", node)
        self.note_store(place)
        values = [self.converted(v, place.type, a) for v, a in zip(given, node.arguments[1:], strict=True)]
        locate, fns, site = self.locator(place), [v.fn for v in values], place.site

        def run(c: Context) -> Any:
            return atomic(c, site, locate(c), function, [f(c) for f in fns])

        return Operand(place.type, run, pure=False)

    def printf(self, node: tree.Call) -> Operand:
        if not node.arguments or not isinstance(node.arguments[0], tree.Text):
            raise self.refuse("printf needs its format as a string", node)
        pattern = node.arguments[0].value
        texts: list[bytes] = []
        fns: list[Any] = []
        for argument in node.arguments[1:]:
            if isinstance(argument, tree.Text):
                texts.append(argument.value)
                number = len(texts)
                fns.append((TEXT, lambda c, number=number: number))
            else:
                value = self.expr(argument)
                if not isinstance(value.type, Scalar):
                    raise self.refuse(f"printf cannot print {value.type}", argument)
                fns.append((value.type, value.fn))

        def run(c: Context) -> Any:
            values = [(type_, f(c)) for type_, f in fns]
            if len(c.output) >= c.limits.printf:
                return np.int32(0)
            for lane in c.active_lanes()[: c.limits.printf - len(c.output)].tolist():
                row = [tagged(type_, v[lane] if isinstance(v, np.ndarray) else v) for type_, v in values]
                text = formatted(pattern, row, lambda number: texts[number - 1], lambda _: None)
                c.output.append(text.decode("utf-8", "surrogateescape"))
            return np.int32(0)

        return Operand(types.INT, run, pure=False)

    def assertion(self, span: Span) -> Operand:
        def run(c: Context) -> Any:
            lanes = c.active_lanes()
            if len(lanes):
                c.collector.add(c, Kind.ASSERTION, span, lanes, access="assert")
            return np.int32(0)

        return Operand(types.INT, run, pure=False)  # as (void)0, the other branch of the macro

    # -- values of structs

    def construct(self, type_: Type, arguments: list[Any], node: tree.Node) -> Operand:
        if isinstance(type_, Scalar):
            if len(arguments) != 1:
                if not arguments:
                    return self.constant_value(dtype_of(type_).type(0), type_)
                raise self.refuse(f"{type_} is made from one value", node)
            return self.converted(self.expr(arguments[0]), type_, node)
        if isinstance(type_, Record):
            if len(arguments) == 1 and not isinstance(arguments[0], tree.Braces):
                single = self.expr(arguments[0])
                if single.type is type_:
                    return self.converted(single, type_, node)
            if any(not m.defaulted for m in type_.methods.get("<new>", [])):
                return self.constructed(type_, arguments, node)
            parts = self.flatten(type_, tree.Braces(arguments, extent=node.span))
            fns = [p.fn for p in parts]
            return Operand.of(type_, lambda c: tuple(f(c) for f in fns), *parts)
        raise self.refuse(f"{type_} cannot be made like this", node)
