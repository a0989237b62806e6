"""Calls of device functions, methods, constructors, operators and lambdas: resolved and compiled inline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tilewise.emulator.compile import lvalue
from tilewise.emulator.compile.expression import ExprCompiler
from tilewise.emulator.compile.operand import Closure, Operand
from tilewise.emulator.limits import Limits
from tilewise.emulator.machine.context import Context, Frame
from tilewise.emulator.machine.leaves import dtypes_of, leaf_offset
from tilewise.emulator.machine.memory import UNSET, Cells, merge
from tilewise.emulator.machine.program import Variable
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Pointer, Record, Reference, Type
from tilewise.emulator.sema.bodies import body_of
from tilewise.emulator.sema.given import Given
from tilewise.emulator.sema.overload import Choice, NoMatch, choose, fits, no_match, operator_choice, with_auto
from tilewise.emulator.sema.symbol_table import Environment
from tilewise.errors import KernelError


class InlineCompiler(ExprCompiler):
    def device_call(self, node: tree.Call, functions: list[tree.Function]) -> Operand:
        if "__global__" in functions[0].specifiers:
            raise self.refuse("a kernel cannot call a kernel here", node)
        written = node.function.arguments if isinstance(node.function, tree.Name) else None
        choice = self.choice(functions[0].short, [(f, None, 0) for f in functions], written, node)
        return self.call_choice(choice, node, None)

    def choice(self, name: str, candidates: list[Any], written: Any, node: tree.Call) -> Choice:
        """Overload resolution; a single candidate that is no template is taken without ranking."""
        if len(candidates) == 1 and fits(candidates[0][0], len(node.arguments)):
            function, record, offset = candidates[0]
            if not with_auto(function).template:
                return Choice(function, {}, record, offset)
        values = self.given(node.arguments)
        try:
            return choose(self.table, self.env, name, candidates, written, values)
        except NoMatch:
            raise self.refuse(no_match(name, candidates, values), node) from None

    def given(self, nodes: list[Any]) -> list[Any]:
        """Arguments for overload resolution."""
        out: list[Any] = []
        for node in nodes:
            if isinstance(node, tree.Braces):
                out.append(node)
                continue
            place = self.place(node)
            type_ = place.type if place is not None else self.expr(node).type
            zero = isinstance(node, tree.Number) and node.value == 0
            out.append(Given(self.written_type(type_), place is not None, zero=zero))
        return out

    def call_choice(self, choice: Choice, node: tree.Call, this: lvalue.Lvalue | None) -> Operand:
        function = self.table.definition(choice.node)
        if len(self.path) >= 2 * self.limits.nesting:
            raise self.refuse(f"{function.name}: calls nested too deep", node)
        env = self.environment(function, choice.bindings, choice.record)
        if (id(function), str(env.bindings)) in self.open_functions:
            raise self.refuse(f"{function.name} calls itself, which is not supported", node)
        return self.inline(function, node, env, None if "static" in function.specifiers else this)

    def environment(self, function: tree.Function, level: dict[str, Any], record: Any = None) -> Environment:
        outer = record.bindings if record is not None else {}
        scope = record.scope if record is not None else function.scope
        return Environment({**outer, **level}, scope, record, self.known_local, self.type_of)

    def inline(
        self, function: tree.Function, node: tree.Call, env: Environment, this: lvalue.Lvalue | None = None
    ) -> Operand:
        """The function's body with new variables for its parameters; `this`: the object of a method."""
        body = body_of(self.table, function, env)
        if not function.library:
            return self.inlined(function, body, node, env, [{}], this)
        kept, self.call_site = self.call_site, self.call_site or node
        try:
            return self.inlined(function, body, node, env, [{}], this)
        except KernelError as error:  # reported at the call, not in a shipped header
            raise self.refuse(f"{function.short} is not supported on the machine ({error.message})", node) from None
        finally:
            self.call_site = kept

    def inlined(
        self, function: Any, body: tree.Block, node: tree.Call, env: Environment, outer: Any, this: Any = None
    ) -> Operand:
        """Compile a body inline; `function` is a function or a lambda."""
        name = getattr(function, "name", "lambda")
        kept_path, kept_scopes, kept_index, kept_env = self.path, self.scopes, self.in_index, self.env
        starts: list[Any] = []
        scope: dict[str, Variable] = {}
        self.in_index = 0
        inner, opened = (*kept_path, id(node), name), (id(function), str(env.bindings))
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
            self.open_functions.add(opened)
            run_body = self.function_body(body)
            result = self.returns.pop() or types.VOID
            members = self.returned_members.pop() or {}
        finally:
            self.path, self.scopes, self.in_index, self.env = kept_path, kept_scopes, kept_index, kept_env
            self.open_functions.discard(opened)

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

        made = Operand.of(result, run, *values, pure=False)
        made.members = members
        return made

    def bind_parameters(
        self, function: Any, node: tree.Call, env: Environment, path: Any, scope: dict[str, Variable], starts: list[Any]
    ) -> list[Operand]:
        """Declare the parameters in `scope` and bind or initialise them; returns the arguments' operands."""
        values: list[Operand] = []
        outer_path, outer_env = self.path, self.env
        for i, parameter in enumerate(function.parameters):
            given = node.arguments[i] if i < len(node.arguments) else parameter.default
            name, key = parameter.name, (*path, id(parameter))
            if given is None:
                raise self.refuse(f"a value for {name} is missing in this call", node)
            self.env = replace(env, local=None)  # the current scopes are the caller's
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
        """Declare a reference to a place in `scope`; returns the code that binds it."""
        address = self.address(place, Pointer(place.type))
        variable = Variable(name, place.type, (*path, identity), self.new_slot(), "reference")
        self.flow.sources.setdefault(variable.key, set()).update(self.pointer_roots.get(id(address), {"*"}))
        scope[name] = variable
        return self.bind_reference(variable, address)

    def dereferenced(self, made: Operand, node: tree.Node) -> Operand:
        """The value of a call; a returned reference is loaded."""
        return self.load(self.referred(made, node)) if isinstance(made.type, Reference) else made

    def referred(self, made: Operand, node: tree.Node) -> lvalue.Lvalue:
        assert isinstance(made.type, Reference)
        made.type = Pointer(made.type.to)
        return self.through(made, node)

    def called_place(self, node: Any) -> lvalue.Lvalue | None:
        """The place that a call returns a reference to; None if it returns a value."""
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

    def method(self, node: tree.Call, record: Record, name: str, written: Any, place: Any) -> Operand:
        found = record.methods_named(name)
        if not found:
            raise self.refuse(f"{record} has no member {name}", node)
        return self.call_choice(self.choice(f"{record}::{name}", found, written, node), node, place)

    def object_place(self, node: Any) -> tuple[lvalue.Lvalue, Any]:
        """The place of an object; of an rvalue, a temporary, with the code that initialises it."""
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
        """An object made by a constructor."""
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
        """Initialise bases and members before a constructor's body; delegating constructors only delegate."""
        struct, object_type = self.env.record, this.type
        assert struct is not None
        assert isinstance(object_type, Record)
        start = object_type.derives(struct) or 0
        whole = self.variable_place(this, function)
        given = {target: value for target, value in function.initialisers if isinstance(target, str)}
        runs: list[Any] = []
        for target, value in function.initialisers:
            if not isinstance(target, str):
                record, items = self.resolve(target), value.items if isinstance(value, tree.Braces) else value
                assert isinstance(record, Record)
                call = self.calls.setdefault(id(target), tree.Call(target, items, extent=function.span))
                runs.append(self.method(call, record, "<new>", None, whole).fn)
                if record is struct:
                    return runs
        for f in struct.fields:
            value = given.get(f.name, f.init.init if f.init is not None else None)
            if value is None:
                continue
            items = value.items if isinstance(value, tree.Braces) else value
            first = items[0] if isinstance(items, list) and items else items
            type_: Type = f.type
            referred = self.place(first) if isinstance(type_, Reference) else None
            if isinstance(type_, Reference):
                if referred is None:
                    raise self.refuse("a member that is a reference is bound to a temporary", function)
                type_ = Pointer(type_.to)
            place = whole.inner(type_, leaf_offset(object_type, start + f.offset))
            if referred is not None:
                made = self.address(referred, Pointer(referred.type))
            elif isinstance(items, list):
                made = self.construct(place.type, items, function)
            else:
                made = self.value_for(items, place.type)
            put, locate, fn = self.store_at(place), self.locator(place), made.fn
            runs.append(lambda c, put=put, locate=locate, fn=fn: put(c, locate(c), fn(c)))
        return runs

    def operator_call(self, name: str, operands: list[Any], node: tree.Node) -> Operand | None:
        """`a + b` by an overloaded operator; None if there is none."""
        choice = operator_choice(self.table, self.env, name, self.given(operands))
        if choice is None:
            return None
        own = choice.record is not None
        call = tree.Call(tree.Name(name), operands[own:], extent=node.span)
        call = self.calls.setdefault(id(node), call)
        place, before = self.object_place(operands[0]) if own else (None, None)
        return self.after(before, self.call_choice(choice, call, place))

    def bind_reference(self, variable: Variable, address: Operand) -> Any:
        slot, fn = variable.slot, address.fn

        def run(c: Context) -> None:
            c.registers[slot], c.declared[slot] = fn(c), c.mask

        return run

    def initialise(self, variable: Variable, value: Operand, node: tree.Node) -> Any:
        """Code that initialises a new variable."""
        if variable.storage == "register":
            return self.register_assign(variable, value, node, declare=True).fn
        slot, type_, name, fn = variable.slot, variable.type, variable.name, value.fn
        dtypes = dtypes_of(type_)
        for leaf, symbol in value.members.items():
            self.flow.note_member((variable.key, leaf), symbol)
        if value.loads or value.from_global:
            self.flow.add(self.flow.from_global, variable.key)
        dims = variable.dims

        def run(c: Context) -> None:
            cells = Cells(name, len(dtypes), dtypes, dims)
            cells.mask = c.mask
            cells.values = lvalue.unpack(type_, fn(c))
            c.registers[slot] = cells

        return run

    returns: list[Type | None]
    returned_members: list[dict[int, int] | None]  # leading dimensions that all returns so far agree on
    limits: Limits

    call_result: Callable[[tree.Call], Operand]
    open_functions: set[tuple[int, str]]  # the functions being compiled inline, with their template arguments
    calls: dict[int, tree.Call]  # synthesised for operators and constructors, by the node's id

    new_variable: Callable[[str, Type, int], Variable]
    known_local: Callable[[str], Any]
    parameter_variable: Callable[[str, Type, int], Variable]
    function_body: Callable[[Any], Any]


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
