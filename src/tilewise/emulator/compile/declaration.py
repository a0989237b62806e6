"""Variables of a kernel: registers, cells (local arrays and structs), shared memory, references."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.compile.call import CallCompiler
from tilewise.emulator.compile.operand import Closure, Operand
from tilewise.emulator.machine.context import Context
from tilewise.emulator.machine.control import Run, nothing
from tilewise.emulator.machine.leaves import dtypes_of, leaf_count
from tilewise.emulator.machine.memory import UNSET, Cells
from tilewise.emulator.machine.program import Variable
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Array, Pointer, Record, Reference, Scalar, Type, dimensions, innermost

MAX_LEAVES = 1 << 16  # of a local array or struct; each is an array over all lanes


class DeclarationCompiler(CallCompiler):
    def declaration(self, node: tree.Declaration) -> Run:
        runs = [r for item in node.items if (r := self.declare(item)) is not None]
        line = node.span.line

        def run(c: Context) -> bool:
            c.tick(line)
            for r in runs:
                r(c)
            return True

        return run if runs else nothing

    def counted(self, type_: Type, init: Any) -> Type:
        """`float a[] = {1, 2}` gets its length from the initialiser."""
        if isinstance(type_, Array) and type_.length == 0 and isinstance(init, tree.Braces):
            return Array(type_.of, len(init.items))
        return type_

    def declare(self, item: tree.Variable) -> Any:
        specifiers = item.specifiers
        if "__shared__" in specifiers:
            return self.declare_shared(item, specifiers)
        if item.name in self.scopes[-1]:
            raise self.refuse(f"{item.name} is declared twice", item)
        if "function" in specifiers:  # a prototype
            return None
        if tree.is_auto(item.type):
            if isinstance(item.type, tree.TypeReference) and item.init is not None:
                return self.declare_reference(item, Reference(self.type_of(item.init)))
            if item.init is None:
                raise self.refuse(f"auto {item.name} needs a value", item)
            given = self.expr(item.init)
            if isinstance(given.type, Closure):
                self.scopes[-1][item.name] = Variable(item.name, given.type, (*self.path, id(item)), -1, "closure")
                return given.fn
            variable = self.new_variable(item.name, given.type, id(item))
            self.scopes[-1][item.name] = variable
            return self.initialise(variable, given, item)
        type_ = self.counted(self.resolve(item.type), item.init)
        if isinstance(type_, Reference):
            return self.declare_reference(item, type_)
        if type_ is types.VOID:
            raise self.refuse(f"{item.name} cannot be void", item)
        feeding = (*self.path, id(item)) in self.flow.index
        self.in_index += feeding
        try:
            value = self.first_value(item, type_)
        finally:
            self.in_index -= feeding
        if isinstance(item.type, tree.TypeConst):
            made = self.named_constant(item, type_, value)
            if made:
                return None
        if leaf_count(type_) > MAX_LEAVES:
            raise self.refuse(f"{item.name}: a local array of {leaf_count(type_)} elements is too large", item)
        variable = self.new_variable(item.name, type_, id(item))
        self.scopes[-1][item.name] = variable
        if value is not None:
            return self.initialise(variable, value, item)
        blank = self.blank(variable)
        if not isinstance(type_, Record) or all(m.defaulted for m in type_.methods.get("<new>", [])):
            return blank
        call = self.calls.setdefault(id(item), tree.Call(item, [], extent=item.span))
        constructed = self.method(call, type_, "<new>", None, self.variable_place(variable, item)).fn
        return lambda c: (blank(c), constructed(c))

    def named_constant(self, item: tree.Variable, type_: Type, value: Operand | None) -> bool:
        key = (*self.path, id(item))
        if value is None or value.const is None or not isinstance(type_, Scalar) or key in self.flow.address_taken:
            return False
        variable = Variable(item.name, type_, key, -1, "constant", const=value.const, dimension=value.dimension)
        self.scopes[-1][item.name] = variable
        return True

    def first_value(self, item: tree.Variable, type_: Type) -> Operand | None:
        if item.arguments is not None:
            return self.construct(type_, item.arguments, item)
        if item.init is None:
            return None
        if isinstance(type_, (Array, Record)) and isinstance(item.init, tree.Braces):
            parts = self.flatten(type_, item.init)
            fns = [p.fn for p in parts]
            return Operand.of(type_, lambda c: tuple(f(c) for f in fns), *parts, pure=False)
        return self.value_for(item.init, type_)

    def blank(self, variable: Variable) -> Any:
        """Code that declares a variable without an initialiser."""
        variable.blank = True
        slot, row_slot = variable.slot, variable.row_slot
        if variable.storage == "cells":
            dtypes, name, dims = dtypes_of(variable.type), variable.name, variable.dims

            def cells(c: Context) -> None:
                made = Cells(name, len(dtypes), dtypes, dims)
                made.mask = c.mask
                c.registers[slot] = made

            return cells

        def register(c: Context) -> None:
            c.registers[slot], c.declared[slot] = UNSET, c.mask
            if row_slot >= 0:
                c.registers[row_slot], c.declared[row_slot] = UNSET, c.mask

        return register

    def declare_reference(self, item: tree.Variable, type_: Reference) -> Any:
        if item.init is None:
            raise self.refuse(f"the reference {item.name} needs something to refer to", item)
        place = self.place(item.init)
        if place is None:
            value = self.value_for(item.init, type_.to)
            variable = self.new_variable(item.name, type_.to, id(item))
            self.scopes[-1][item.name] = variable
            return self.initialise(variable, value, item)
        address = self.address(place, Pointer(place.type))
        variable = self.parameter_variable(item.name, type_, id(item))
        self.flow.sources.setdefault(variable.key, set()).update(self.pointer_roots.get(id(address), {"*"}))
        self.scopes[-1][item.name] = variable
        return self.bind_reference(variable, address)

    def declare_shared(self, item: tree.Variable, specifiers: frozenset[str]) -> None:
        type_ = self.resolve(item.type)
        if item.init is not None:
            raise self.refuse("a shared variable cannot have a first value", item)
        dims, inner = dimensions(type_), innermost(type_)
        count = leaf_count(inner)
        kinds = set(dtypes_of(inner))
        if None in kinds or len(kinds) != 1:
            raise self.refuse(f"shared memory for {inner} is not supported", item)
        external = "extern" in specifiers and dims[:1] == [0]
        if isinstance(type_, Array) and dims and 0 in dims and not external:
            raise self.refuse(f"{item.name} has no size", item)
        if count > 1:
            dims.append(count)
        self.shared.append((item.name, type_, tuple(dims), external))
        key, number = (*self.path, id(item)), len(self.shared) - 1
        walked = (0,) if external else ()  # its length is set by the launch: treated like a pointer
        variable = Variable(item.name, type_, key, -1, "shared", buffer=number, dims=walked)
        self.scopes[-1][item.name] = variable

    def new_variable(self, name: str, type_: Type, identity: int) -> Variable:
        key = (*self.path, identity)
        aggregate = isinstance(type_, (Array, Record))
        storage = "cells" if aggregate or key in self.flow.address_taken else "register"
        row_slot = self.new_slot() if storage == "register" and isinstance(type_, Scalar) else -1
        return Variable(name, type_, key, self.new_slot(), storage, row_slot, dims=tuple(dimensions(type_)))

    def parameter_variable(self, name: str, type_: Type, identity: int) -> Variable:
        if isinstance(type_, Reference):
            return Variable(name, type_.to, (*self.path, identity), self.new_slot(), "reference")
        return self.new_variable(name, type_, identity)
