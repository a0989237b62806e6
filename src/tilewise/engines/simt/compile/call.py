"""Calls: CUDA's own functions, barriers, atomics, printf, and the file's device functions, compiled in place."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from tilewise.engines.simt.compile import lvalue
from tilewise.engines.simt.compile.expression import ExprCompiler
from tilewise.engines.simt.compile.intrinsics import FIXED, REAL, REFUSED, fmax, fmin
from tilewise.engines.simt.compile.operand import Operand
from tilewise.engines.simt.compile.warp_call import warp_call
from tilewise.engines.simt.frontend import ctype
from tilewise.engines.simt.frontend.ctype import Pointer, Reference, Scalar, Struct, Type
from tilewise.engines.simt.frontend.syntax import Braces, Call, Expr, Function, Node, Text, TypeNode
from tilewise.engines.simt.limits import Limits
from tilewise.engines.simt.machine.atomics import ATOMICS, atomic
from tilewise.engines.simt.machine.barrier import barrier, warp_barrier
from tilewise.engines.simt.machine.context import Context, Frame
from tilewise.engines.simt.machine.findings import Kind
from tilewise.engines.simt.machine.memory import UNSET, Cells, merge
from tilewise.engines.simt.machine.printing import formatted
from tilewise.engines.simt.machine.program import Variable

INT_MIN_MAX = {"min": (np.minimum, fmin), "max": (np.maximum, fmax)}
EXTRA = {"umin": "min", "umax": "max", "llmin": "min", "llmax": "max"}


class CallCompiler(ExprCompiler):
    def call(self, node: Call) -> Operand:
        name = node.name
        functions = [f for f in self.file.functions.get(name, []) if f.body is not None]
        if functions:
            return self.device_call(node, functions)
        if name in ("__syncthreads", "__syncwarp", "__threadfence", "__threadfence_block", "__trap"):
            return self.fence(node)
        if name in ("printf", "assert"):
            return self.printf(node) if name == "printf" else self.assertion(node)
        if name in ATOMICS:
            return self.atomic(node)
        if name in ("__ldg", "__ldcg", "__ldca", "__ldcs") and len(node.arguments) == 1:
            return self.load(self.through(self.expr(node.arguments[0]), node))
        if name.startswith(("__shfl", "__any", "__all", "__ballot", "__reduce_", "__activemask", "__syncthreads_")):
            return warp_call(self, node)
        if name.startswith("make_") and name[5:] in ctype.NAMED:
            return self.construct(ctype.NAMED[name[5:]], node.arguments, node)
        for start, reason in REFUSED:
            if name.startswith(start):
                raise self.refuse(reason, node)
        return self.intrinsic(node)

    # -- CUDA's functions on numbers

    def intrinsic(self, node: Call) -> Operand:
        name = EXTRA.get(node.name, node.name)
        values = [self.expr(a) for a in node.arguments]
        if name in INT_MIN_MAX or name == "abs":
            count = 1 if name == "abs" else 2
            types = [self.arithmetic(v, a) for v, a in zip(values, node.arguments, strict=True)]
            if len(values) != count:
                raise self.refuse(f"{name} takes {count} arguments, {len(values)} are given", node)
            type_ = ctype.promote(types[0]) if count == 1 else ctype.common(*types)
            function: Any = np.abs if name == "abs" else INT_MIN_MAX[name][type_.floating]
            return self.apply(function, [type_] * count, type_, values, node)
        if name in ("labs", "llabs"):
            return self.apply(np.abs, [ctype.LLONG], ctype.LLONG, values, node)
        if name in FIXED:
            parameters, result, function = FIXED[name]
            return self.apply(function, list(parameters), result, values, node)
        if name in ("__float2bfloat16", "__float2bfloat16_rn", "__bfloat162float"):
            wide = ctype.bfloat16()
            back = name == "__bfloat162float"
            source, target = (wide, ctype.FLOAT) if back else (ctype.FLOAT, wide)
            return self.apply(lambda v: v.astype(target.dtype), [source], target, values, node)
        single = name.endswith("f") and name[:-1] in REAL
        entry = REAL.get(name[:-1] if single else name)
        if entry is not None:
            count, function = entry
            if len(values) != count:
                raise self.refuse(f"{name} takes {count} arguments, {len(values)} are given", node)
            types = [self.arithmetic(v, a) for v, a in zip(values, node.arguments, strict=True)]
            chosen = ctype.FLOAT if single else ctype.DOUBLE
            if not single and all(t.floating for t in types) and max(t.rank for t in types) <= ctype.FLOAT.rank:
                chosen = ctype.FLOAT
            return self.apply(function, [chosen] * count, chosen, values, node)
        if name in ("isnan", "isinf", "isfinite"):
            function = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}[name]
            return self.apply(function, [ctype.DOUBLE], ctype.BOOL, values, node)
        host = self.file.skipped.get(name)
        reason = f" ({host})" if host is not None else ""
        raise self.refuse(f"the function {name} is not known{reason}", node)

    def apply(self, function: Any, types: list[Scalar], result: Scalar, values: list[Operand], node: Call) -> Operand:
        if len(values) != len(types):
            raise self.refuse(f"{node.name} takes {len(types)} arguments, {len(values)} are given", node)
        ready = [self.converted(v, t, a) for v, t, a in zip(values, types, node.arguments, strict=True)]
        fns = [e.fn for e in ready]
        if len(fns) == 1:
            only = fns[0]
            run = lambda c: function(only(c))  # noqa: E731
        elif len(fns) == 2:
            first, second = fns
            run = lambda c: function(first(c), second(c))  # noqa: E731
        else:
            run = lambda c: function(*[f(c) for f in fns])  # noqa: E731
        made = Operand(
            result,
            run,
            pure=all(e.pure for e in ready),
            shared=any(e.shared for e in ready),
            loads=any(e.loads for e in ready),
            fed=any(e.fed for e in ready),
        )
        return self.folded(made, *ready)

    # -- synchronisation, atomics, printing

    def fence(self, node: Call) -> Operand:
        span = node.span
        if node.name == "__syncthreads":
            if node.arguments:
                raise self.refuse("__syncthreads takes no argument", node)

            def sync(c: Context) -> Any:
                barrier(c, span)
                return np.int32(0)

            return Operand(ctype.VOID, sync, pure=False)
        if node.name == "__syncwarp":

            def sync_warp(c: Context) -> Any:
                warp_barrier(c)
                return np.int32(0)

            return Operand(ctype.VOID, sync_warp, pure=False)
        return Operand(ctype.VOID, lambda c: np.int32(0), pure=False)

    def atomic(self, node: Call) -> Operand:
        count, function = ATOMICS[node.name]
        if len(node.arguments) != count:
            raise self.refuse(f"{node.name} takes {count} arguments, {len(node.arguments)} are given", node)
        place = self.through(self.expr(node.arguments[0]), node)
        if not isinstance(place.type, Scalar):
            raise self.refuse(f"{node.name} on {place.type} is not supported", node)
        self.note_store(place)
        values = [self.converted(self.expr(a), place.type, a) for a in node.arguments[1:]]
        locate, fns, site = self.locator(place), [v.fn for v in values], place.site

        def run(c: Context) -> Any:
            return atomic(c, site, locate(c), function, [f(c) for f in fns])

        return Operand(place.type, run, pure=False)

    def printf(self, node: Call) -> Operand:
        if not node.arguments or not isinstance(node.arguments[0], Text):
            raise self.refuse("printf needs its format as a string", node)
        pattern = node.arguments[0].value
        fns: list[Any] = []
        for argument in node.arguments[1:]:
            if isinstance(argument, Text):
                text = argument.value
                fns.append(lambda c, text=text: text)
            else:
                value = self.expr(argument)
                if not isinstance(value.type, Scalar):
                    raise self.refuse(f"printf cannot print {value.type}", argument)
                fns.append(value.fn)

        def run(c: Context) -> Any:
            values = [f(c) for f in fns]
            if len(c.output) >= c.limits.printf:
                return np.int32(0)
            for lane in c.active_lanes()[: c.limits.printf - len(c.output)].tolist():
                row = [v[lane] if isinstance(v, np.ndarray) else v for v in values]
                c.output.append(formatted(pattern, row))
            return np.int32(0)

        return Operand(ctype.INT, run, pure=False)

    def assertion(self, node: Call) -> Operand:
        if len(node.arguments) != 1:
            raise self.refuse("assert takes one argument", node)
        fn, span = self.condition(node.arguments[0]).fn, node.span

        def run(c: Context) -> Any:
            failed = ~np.broadcast_to(np.asarray(fn(c)), (c.n,))
            if c.mask is not None:
                failed = failed & c.mask
            lanes = np.flatnonzero(failed)
            if len(lanes):
                c.collector.add(c, Kind.ASSERTION, span, lanes, access="assert")
            return np.int32(0)

        return Operand(ctype.VOID, run, pure=False)

    # -- values of structs

    def construct(self, type_: Type, arguments: list[Expr], node: Node) -> Operand:
        if isinstance(type_, Scalar):
            if len(arguments) != 1:
                if not arguments:
                    return self.constant_value(type_.dtype.type(0), type_)
                raise self.refuse(f"{type_} is made from one value", node)
            return self.converted(self.expr(arguments[0]), type_, node)
        if isinstance(type_, Struct):
            if len(arguments) == 1 and not isinstance(arguments[0], Braces):
                single = self.expr(arguments[0])
                if isinstance(single.type, Struct):
                    return self.converted(single, type_, node)
            span = node.span
            parts = self.flatten(type_, Braces(arguments, span=span))
            fns = [p.fn for p in parts]
            return Operand(
                type_,
                lambda c: tuple(f(c) for f in fns),
                pure=all(p.pure for p in parts),
                shared=any(p.shared for p in parts),
                loads=any(p.loads for p in parts),
                fed=any(p.fed for p in parts),
            )
        raise self.refuse(f"{type_} cannot be made like this", node)

    # -- device functions

    def device_call(self, node: Call, functions: list[Function]) -> Operand:
        usable = [f for f in functions if len(f.parameters) >= len(node.arguments)] or functions
        function = usable[0]
        if "__global__" in function.words:
            raise self.refuse("a kernel cannot call a kernel here", node)
        if len(self.path) >= 2 * self.limits.nesting:
            raise self.refuse(f"{function.name}: calls nested too deep", node)
        if function.name in [p for p in self.path if isinstance(p, str)]:
            raise self.refuse(f"{function.name} calls itself, which is not supported", node)
        if len(node.arguments) > len(function.parameters):
            raise self.refuse(
                f"{function.name} takes {len(function.parameters)} arguments, {len(node.arguments)} are given",
                node,
            )
        given = [None if isinstance(a, Braces) else self.expr(a) for a in node.arguments]
        if len(usable) > 1:
            function = self.overload(usable, given)
        level = self.template_level(function, node, given)
        return self.inline(function, node, level)

    def overload(self, functions: list[Function], given: list[Operand | None]) -> Function:
        def distance(function: Function) -> int:
            total = 0 if len(function.parameters) == len(given) else 50
            for parameter, value in zip(function.parameters, given, strict=False):
                if function.template or value is None:
                    total += 5
                    continue
                type_ = self.resolve(parameter.type)
                type_ = type_.to if isinstance(type_, Reference) else type_
                if type_ != value.type:
                    total += 10 if isinstance(type_, Scalar) and isinstance(value.type, Scalar) else 100
            return total

        return min(functions, key=distance)

    def template_level(self, function: Function, node: Call, given: list[Operand | None]) -> dict[str, Any]:
        level: dict[str, Any] = {}
        for wanted, argument in zip(function.template, node.template or [], strict=False):
            level[wanted.name] = self.resolve(argument) if isinstance(argument, TypeNode) else self.constant(argument)
        names = {p.name: p for p in function.template}
        for parameter, value in zip(function.parameters, given, strict=False):
            if value is not None:
                self.deduce(parameter.type, value.type, names, level)
        for template in function.template:
            if template.name not in level and template.name != "<none>":
                if template.default is None:
                    raise self.refuse(f"the template argument {template.name} cannot be found", node)
                default = template.default
                level[template.name] = (
                    self.resolve(default) if isinstance(default, TypeNode) else self.constant(default)
                )
        return level

    def deduce(self, node: TypeNode, type_: Type, names: dict[str, Any], level: dict[str, Any]) -> None:
        from tilewise.engines.simt.frontend.syntax import ArrayType, NamedType, PointerType, ReferenceType
        from tilewise.engines.simt.frontend.syntax import Name as NameNode

        if isinstance(node, NamedType) and node.name in names and node.name not in level:
            level[node.name] = type_
        elif isinstance(node, PointerType) and isinstance(type_, Pointer):
            self.deduce(node.to, type_.to, names, level)
        elif isinstance(node, ReferenceType):
            self.deduce(node.to, type_, names, level)
        elif isinstance(node, ArrayType) and isinstance(type_, ctype.Array):
            if isinstance(node.length, NameNode) and node.length.name in names:
                level.setdefault(node.length.name, type_.length)
            self.deduce(node.of, type_.of, names, level)

    def inline(self, function: Function, node: Call, level: dict[str, Any]) -> Operand:
        """The function's body with its parameters in registers of their own."""
        assert function.body is not None
        kept_path, kept_scopes, kept_index = self.path, self.scopes, self.in_index
        arguments: list[tuple[Variable, Any]] = []
        scope: dict[str, Variable] = {}
        self.template.append(level)
        self.in_index = 0
        shared = loads = fed = False
        try:
            for i, parameter in enumerate(function.parameters):
                type_ = self.resolve(parameter.type)
                self.path = (*kept_path, id(node), function.name)
                argument = node.arguments[i] if i < len(node.arguments) else parameter.default
                if argument is None:
                    raise self.refuse(f"{function.name} needs a value for {parameter.name}", node)
                variable = self.parameter_variable(parameter.name, type_, id(parameter))
                self.path = kept_path
                if isinstance(type_, Reference):
                    place = self.place(argument)
                    if place is not None:
                        address = self.address(place, Pointer(place.type))
                        self.flow.sources.setdefault(variable.key, set()).update(
                            self.pointer_roots.get(id(address), {"*"})
                        )
                        arguments.append((variable, self.bind_reference(variable, address)))
                        scope[parameter.name] = variable
                        continue
                    variable = self.parameter_variable(parameter.name, type_.to, id(parameter))
                    type_ = type_.to
                value = self.value_for(argument, type_)
                shared, loads, fed = shared or value.shared, loads or value.loads, fed or value.fed
                arguments.append((variable, self.initialise(variable, value, argument)))
                scope[parameter.name] = variable
            result = self.resolve(function.result) if not _is_auto(function.result) else None
            self.path = (*kept_path, id(node), function.name)
            self.scopes = [kept_scopes[0], scope]
            self.returns.append(result)
            self.returned_members.append(None)
            body = self.function_body(function.body)
            result = self.returns.pop() or ctype.VOID
            members = self.returned_members.pop() or {}
        finally:
            self.path, self.scopes, self.in_index = kept_path, kept_scopes, kept_index
            self.template.pop()
        starts = [run for _, run in arguments]

        def run(c: Context) -> Any:
            for start in starts:
                start(c)
            frame, mask = Frame(), c.mask
            loops, c.loops = c.loops, []
            c.frames.append(frame)
            body(c)
            c.frames.pop()
            c.loops, c.mask = loops, mask
            value = frame.value
            return np.int32(0) if value is UNSET else value

        return Operand(result, run, pure=False, shared=shared, loads=loads, fed=fed, members=members)

    def bind_reference(self, variable: Variable, address: Operand) -> Any:
        slot, fn = variable.slot, address.fn

        def run(c: Context) -> None:
            c.f[slot], c.declared[slot] = fn(c), c.mask

        return run

    def initialise(self, variable: Variable, value: Operand, node: Node) -> Any:
        """Code that gives a fresh variable its first value."""
        if variable.storage == "register":
            return self.register_assign(variable, value, node, declare=True).fn
        slot, type_, name, fn = variable.slot, variable.type, variable.name, value.fn
        dtypes = ctype.dtypes_of(type_)
        for leaf, symbol in value.members.items():
            self.flow.note_member((variable.key, leaf), symbol)
        if value.loads or value.fed:
            self.flow.add(self.flow.fed, variable.key)
        dims = variable.dims

        def run(c: Context) -> None:
            cells = Cells(name, len(dtypes), dtypes, dims)
            cells.mask = c.mask
            cells.values = lvalue.unpack(type_, fn(c))
            c.f[slot] = cells

        return run

    returns: list[Type | None]
    returned_members: list[dict[int, int] | None]  # what all returns so far agree on
    limits: Limits

    @abstractmethod
    def parameter_variable(self, name: str, type_: Type, identity: int) -> Variable:
        """Filled in further up the chain of compilers."""

    @abstractmethod
    def function_body(self, node: Any) -> Any:
        """Filled in further up the chain of compilers."""


def _is_auto(node: TypeNode) -> bool:
    from tilewise.engines.simt.frontend.syntax import AutoType

    return isinstance(node, AutoType)


def merge_return(c: Context, value: Any) -> None:
    """`return value` for the active lanes."""
    frame = c.frames[-1]
    if value is not None:
        frame.value = value if frame.value is UNSET else merge(c.mask, value, frame.value)
    if c.mask is None:
        frame.returned = True
    elif frame.returned is not True:
        frame.returned = c.mask if frame.returned is None else frame.returned | c.mask
    frame.version += 1
