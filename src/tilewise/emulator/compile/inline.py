"""The file's device functions: the one that is meant is chosen, and its body compiled where it is called."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from tilewise.emulator.compile import lvalue
from tilewise.emulator.compile.expression import ExprCompiler
from tilewise.emulator.compile.operand import Operand
from tilewise.emulator.frontend import ctype
from tilewise.emulator.frontend.ctype import Pointer, Reference, Scalar, Type
from tilewise.emulator.frontend.syntax import AutoType, Braces, Call, Function, Node, TypeNode
from tilewise.emulator.limits import Limits
from tilewise.emulator.machine.context import Context, Frame
from tilewise.emulator.machine.memory import UNSET, Cells, merge
from tilewise.emulator.machine.program import Variable


class InlineCompiler(ExprCompiler):
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
        from tilewise.emulator.frontend.syntax import ArrayType, NamedType, PointerType, ReferenceType
        from tilewise.emulator.frontend.syntax import Name as NameNode

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
