"""Functions of the device, methods, constructors, operators and lambdas: chosen, and compiled where they are called."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np

from tilewise.emulator.compile import lvalue
from tilewise.emulator.compile.expression import ExprCompiler
from tilewise.emulator.compile.operand import Closure, Operand
from tilewise.emulator.limits import Limits
from tilewise.emulator.machine.context import Context, Frame
from tilewise.emulator.machine.leaves import dtypes_of
from tilewise.emulator.machine.memory import UNSET, Cells, merge
from tilewise.emulator.machine.program import Variable
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Pointer, Record, Reference, Scalar, Type
from tilewise.emulator.sema.bodies import body_of
from tilewise.emulator.sema.symbol_table import Environment
from tilewise.emulator.sema.type_resolution import argument
from tilewise.emulator.sema.unify import unify
from tilewise.errors import KernelError


class InlineCompiler(ExprCompiler):
    def device_call(self, node: tree.Call, functions: list[tree.Function]) -> Operand:
        usable = [f for f in functions if len(f.parameters) >= len(node.arguments)] or functions
        function = usable[0]
        if "__global__" in function.words:
            raise self.refuse("a kernel cannot call a kernel here", node)
        self.check_call(function, node)
        given = [None if isinstance(a, tree.Braces) else self.expr(a) for a in node.arguments]
        if len(usable) > 1:
            function = self.overload(usable, given)
        written = node.function.arguments if isinstance(node.function, (tree.Name, tree.Member)) else None
        level = self.template_level(function, node, written, given)
        return self.inline(function, node, self.environment(function, level))

    def check_call(self, function: tree.Function, node: tree.Call) -> None:
        if len(self.path) >= 2 * self.limits.nesting:
            raise self.refuse(f"{function.name}: calls nested too deep", node)
        if id(function) in self.open_functions:
            raise self.refuse(f"{function.name} calls itself, which is not supported", node)
        if len(node.arguments) > len(function.parameters):
            raise self.refuse(
                f"{function.name} takes {len(function.parameters)} arguments, {len(node.arguments)} are given",
                node,
            )

    def environment(self, function: tree.Function, level: dict[str, Any], record: Any = None) -> Environment:
        outer = record.bindings if record is not None else {}
        scope = record.scope if record is not None else function.scope
        return Environment({**outer, **level}, scope, record, self.known_local, self.type_of)

    def overload(self, functions: list[tree.Function], given: list[Operand | None]) -> tree.Function:
        def distance(function: tree.Function) -> int:
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

    def template_level(
        self, function: tree.Function, node: tree.Node, written: list[Any] | None, given: list[Operand | None]
    ) -> dict[str, Any]:
        level: dict[str, Any] = {}
        for wanted, one in zip(function.template, written or [], strict=False):
            level[wanted.name] = argument(self.table, one, self.env)
        names = {p.name: p for p in function.template}
        for parameter, value in zip(function.parameters, given, strict=False):
            if value is not None and names:
                type_: Any = value.type if isinstance(value.type, Closure) else self.written_type(value.type)
                unify(self.table, parameter.type, type_, names, level, Environment(scope=function.scope))
        for template in function.template:
            if template.name not in level and template.name != "<none>":
                if template.default is None:
                    raise self.refuse(f"the template argument {template.name} cannot be found", node)
                level[template.name] = argument(self.table, template.default, self.environment(function, level))
        return level

    def inline(
        self, function: tree.Function, node: tree.Call, env: Environment, this: lvalue.Lvalue | None = None
    ) -> Operand:
        """The function's body with its parameters in registers of their own, and the object it is called for."""
        body = body_of(self.table, function, env)
        if not function.library:
            return self.inlined(function, body, node, env, [{}], this)
        kept, self.outside = self.outside, self.outside or node
        try:
            return self.inlined(function, body, node, env, [{}], this)
        except KernelError as error:  # said of the call, not of a line in a header that ships with the emulator
            raise self.refuse(f"{function.short} is not supported on the machine ({error.message})", node) from None
        finally:
            self.outside = kept

    def inlined(
        self, function: Any, body: tree.Block, node: tree.Call, env: Environment, outer: Any, this: Any = None
    ) -> Operand:
        """`function`: what has the parameters and the result, a function or a lambda."""
        name = getattr(function, "name", "lambda")
        kept_path, kept_scopes, kept_index, kept_env = self.path, self.scopes, self.in_index, self.env
        starts: list[Any] = []
        scope: dict[str, Variable] = {}
        self.in_index = 0
        inner = (*kept_path, id(node), name)
        try:
            if this is not None:
                starts.append(self.refer("this", this, scope, id(function), inner))
            values = self.bind_parameters(function, node, env, inner, scope, starts)
            self.env, self.path = env, inner
            self.scopes = [kept_scopes[0], *outer, scope]
            written = function.result
            result = None if written is None or tree.is_auto(written) else self.resolve(written)
            if isinstance(function, tree.Function) and written is None:
                result = types.VOID  # a constructor
                starts += self.member_initialisers(function, scope["this"])
            self.returns.append(result)
            self.returned_members.append(None)
            self.open_functions.add(id(function))
            run_body = self.function_body(body)
            result = self.returns.pop() or types.VOID
            members = self.returned_members.pop() or {}
        finally:
            self.path, self.scopes, self.in_index, self.env = kept_path, kept_scopes, kept_index, kept_env
            self.open_functions.discard(id(function))

        def run(c: Context) -> Any:
            for start in starts:
                start(c)
            frame, mask = Frame(), c.mask
            loops, c.loops = c.loops, []
            c.frames.append(frame)
            run_body(c)
            c.frames.pop()
            c.loops, c.mask = loops, mask
            value = frame.value
            return np.int32(0) if value is UNSET else value

        return Operand(
            result, run, pure=False, shared=any(v.shared for v in values), loads=any(v.loads for v in values),
            fed=any(v.fed for v in values), members=members,
        )  # fmt: skip

    def bind_parameters(
        self, function: Any, node: tree.Call, env: Environment, path: Any, scope: dict[str, Variable], starts: list[Any]
    ) -> list[Operand]:
        """Parameters as variables of `scope`, by reference or with the arguments' values, which are returned."""
        values: list[Operand] = []
        outer_path, outer_env = self.path, self.env
        for i, parameter in enumerate(function.parameters):
            given = node.arguments[i] if i < len(node.arguments) else parameter.default
            name, key = parameter.name, (*path, id(parameter))
            if given is None:
                raise self.refuse(f"a value for {name} is missing in this call", node)
            self.env = replace(env, local=None)  # the variables that are in scope here are the caller's
            type_ = None if tree.is_auto(parameter.type) else self.resolve(parameter.type)
            self.env = outer_env
            place = self.place(given) if isinstance(type_, Reference) else None
            if place is not None:
                starts.append(self.refer(name, place, scope, id(parameter), path))
                continue
            type_ = type_.to if isinstance(type_, Reference) else type_
            value = self.expr(given) if type_ is None or isinstance(type_, Closure) else self.value_for(given, type_)
            if isinstance(value.type, Closure):
                scope[name] = Variable(name, value.type, key, -1, "closure")
                starts.append(value.fn)
                continue
            self.path = path
            scope[name] = self.parameter_variable(name, value.type, id(parameter))
            self.path = outer_path
            starts.append(self.initialise(scope[name], value, given))
            values.append(value)
        return values

    def refer(self, name: str, place: lvalue.Lvalue, scope: dict[str, Variable], identity: int, path: Any) -> Any:
        """Another name for a place, declared in `scope`; gives what binds it."""
        address = self.address(place, Pointer(place.type))
        variable = Variable(name, place.type, (*path, identity), self.new_slot(), "reference")
        self.flow.sources.setdefault(variable.key, set()).update(self.pointer_roots.get(id(address), {"*"}))
        scope[name] = variable
        return self.bind_reference(variable, address)

    def dereferenced(self, made: Operand, node: tree.Node) -> Operand:
        """The value of a call, loaded where the function returns a reference."""
        return self.load(self.referred(made, node)) if isinstance(made.type, Reference) else made

    def referred(self, made: Operand, node: tree.Node) -> lvalue.Lvalue:
        assert isinstance(made.type, Reference)
        made.type = Pointer(made.type.to)
        return self.through(made, node)

    def called_place(self, node: Any) -> lvalue.Lvalue | None:
        """The place that a call returns a reference to; None where it returns a value."""
        if isinstance(node, tree.Call):
            if not self.returns_reference(node.function):
                return None
            made: Operand | None = self.call_result(node)
        elif isinstance(node, tree.Index):
            made = self.operator_call("operator[]", [node.base, node.index], node)
        else:
            made = self.operator_call("operator*", [node.operand], node)
        return self.referred(made, node) if made is not None and isinstance(made.type, Reference) else None

    def returns_reference(self, function: Any) -> bool:
        name = getattr(function, "name", "")
        if isinstance(function, tree.Name) and self.find(name) is None:
            found = self.table.functions_named(name, self.env.scope)[1]
        else:
            name = name if isinstance(function, tree.Member) else "operator()"
            found = [m for cs in self.table.entities.classes.values() for c in cs for m in c.methods if m.name == name]
        return any(isinstance(f.result, tree.TypeReference) for f in found)

    # -- methods, constructors, operators, lambdas

    def method_call(self, node: tree.Call, member: tree.Member) -> Operand:
        if member.arrow:
            place: Any = self.through(self.expr(member.base), member)
            before = None
        else:
            place, before = self.object_place(member.base)
        struct = place.type
        if not isinstance(struct, Record):
            raise self.refuse(f"{self.text(member.base)} is {struct}; it has no members", member)
        return self.after(before, self.method(node, struct, member.name, member.arguments, place))

    def method(self, node: tree.Call, struct: Record, name: str, written: Any, place: Any) -> Operand:
        found = struct.methods_named(name)
        usable = [f for f in found if len(f[0].parameters) >= len(node.arguments)]
        if not usable:
            raise self.refuse(f"{struct} has no method {name} of {len(node.arguments)} arguments", node)
        given = [None if isinstance(a, tree.Braces) else self.expr(a) for a in node.arguments]
        kept, self.env = self.env, self.environment(usable[0][0], {}, usable[0][1])
        try:
            chosen = self.overload([f[0] for f in usable], given) if len(usable) > 1 else usable[0][0]
        finally:
            self.env = kept
        record = next(f[1] for f in usable if f[0] is chosen)
        self.check_call(chosen, node)
        level = self.template_level(chosen, node, written, given)
        this = None if "static" in chosen.words else place
        return self.inline(chosen, node, self.environment(chosen, level, record), this)

    def object_place(self, node: Any) -> tuple[lvalue.Lvalue, Any]:
        """The place of an object, and what makes it where it is a mere value."""
        place = self.place(node)
        if place is not None:
            return place, None
        value = self.expr(node)
        variable = self.new_variable("<object>", value.type, id(node))
        return self.variable_place(variable, node), self.initialise(variable, value, node)

    @staticmethod
    def after(before: Any, value: Operand) -> Operand:
        if before is not None:
            fn = value.fn
            value.fn = lambda c: (before(c), fn(c))[1]
        return value

    def constructed(self, struct: Record, arguments: list[Any], node: tree.Node) -> Operand:
        """An object by a constructor of its class."""
        self.path, kept = (*self.path, "<new>"), self.path
        variable = self.new_variable("<object>", struct, id(node))
        self.path = kept
        place = self.variable_place(variable, node)
        call = self.calls.setdefault(id(node), tree.Call(node, arguments, extent=node.span))
        blank = self.initialise(variable, Operand(struct, lambda c: self.zero(struct)), node)
        made = self.method(call, struct, "<new>", None, place).fn
        load = self.load(place)
        fn = load.fn
        load.fn = lambda c: (blank(c), made(c), fn(c))[2]
        load.pure = False
        return load

    def member_initialisers(self, function: tree.Function, this: Variable) -> list[Any]:
        given = {target: value for target, value in function.initialisers if isinstance(target, str)}
        if len(given) < len(function.initialisers):
            raise self.refuse("a constructor that calls another one is not supported", function)
        struct = this.type
        assert isinstance(struct, Record)
        runs = []
        kept = self.scopes
        for f in struct.fields:
            value = given.get(f.name, f.init.init if f.init is not None else None)
            if value is None:
                continue
            target = tree.Member(tree.This(), f.name, True, extent=function.span)
            place = self.place(target)
            assert place is not None
            items = value.items if isinstance(value, tree.Braces) else value
            made = (
                self.construct(place.type, items, function)
                if isinstance(items, list)
                else self.value_for(items, place.type)
            )
            put, locate, fn = self.store_at(place), self.locator(place), made.fn
            runs.append(lambda c, put=put, locate=locate, fn=fn: put(c, locate(c), fn(c)))
        self.scopes = kept
        return runs

    def operator_call(self, name: str, operands: list[Any], node: tree.Node) -> Operand | None:
        """`a + b` where a class has an operator for it; None where neither operand is of a class."""
        given = [self.type_of(o) if not isinstance(o, tree.Braces) else None for o in operands]
        first = given[0]
        if not any(isinstance(type_, Record) for type_ in given):
            return None
        call = self.calls.setdefault(id(node), tree.Call(tree.Name(name), operands, extent=node.span))
        if isinstance(first, Record) and first.methods_named(name):
            own = self.calls.setdefault(
                -id(node), tree.Call(tree.Member(operands[0], name, False), operands[1:], extent=node.span)
            )
            return self.method_call(own, own.function)
        _, functions = self.table.functions_named(name, self.env.scope)
        functions = [f for f in functions if len(f.parameters) == len(operands)]
        return self.device_call(call, functions) if functions else None

    def bind_reference(self, variable: Variable, address: Operand) -> Any:
        slot, fn = variable.slot, address.fn

        def run(c: Context) -> None:
            c.f[slot], c.declared[slot] = fn(c), c.mask

        return run

    def initialise(self, variable: Variable, value: Operand, node: tree.Node) -> Any:
        """Code that gives a fresh variable its first value."""
        if variable.storage == "register":
            return self.register_assign(variable, value, node, declare=True).fn
        slot, type_, name, fn = variable.slot, variable.type, variable.name, value.fn
        dtypes = dtypes_of(type_)
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
    def call_result(self, node: tree.Call) -> Operand:
        """Filled in further up the chain of compilers."""

    open_functions: set[int]  # that are being compiled, one in another
    calls: dict[int, tree.Call]  # made for operators and constructors, by their node

    @abstractmethod
    def new_variable(self, name: str, type_: Type, identity: int) -> Variable:
        """Filled in further up the chain of compilers."""

    @abstractmethod
    def known_local(self, name: str) -> Any:
        """Filled in further up the chain of compilers."""

    @abstractmethod
    def parameter_variable(self, name: str, type_: Type, identity: int) -> Variable:
        """Filled in further up the chain of compilers."""

    @abstractmethod
    def function_body(self, node: Any) -> Any:
        """Filled in further up the chain of compilers."""


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
