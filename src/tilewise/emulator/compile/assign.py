"""Assignment, ++ and --, and the initial values of variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewise.emulator.compile import lvalue
from tilewise.emulator.compile.addressing import PlaceCompiler
from tilewise.emulator.compile.lvalue import Lvalue
from tilewise.emulator.compile.operand import MIXED, Operand
from tilewise.emulator.machine.context import Context
from tilewise.emulator.machine.leaves import dtypes_of, leaf_count, leaves
from tilewise.emulator.machine.memory import Buffer
from tilewise.emulator.machine.memory import Pointer as At
from tilewise.emulator.machine.program import Variable
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Array, Pointer, Record, Scalar, Type


def _is_element(node: Any) -> bool:
    """Whether it is one element, `tile[y][x + 1]`, whose subscripts read no memory."""
    while isinstance(node, tree.Index):
        if not _is_plain(node.index):
            return False
        node = node.base
        if isinstance(node, tree.Name):
            return True
    return False


def _is_plain(node: Any) -> bool:
    if isinstance(node, tree.Binary):
        return _is_plain(node.left) and _is_plain(node.right)
    return isinstance(node, (tree.Name, tree.Number)) or (
        isinstance(node, tree.Member) and isinstance(node.base, tree.Name)
    )


def _is_shared(memory: Any) -> bool:
    return isinstance(memory, Buffer) and memory.space == "shared"


def _begin_phase(c: Context) -> None:
    """Shared memory is stored to: a phase begins if it was read."""
    if c.shared_read:
        c.phase += 1
        c.shared_read = False


class AssignCompiler(PlaceCompiler):
    operate: Callable[[str, Operand, Operand, tree.Node, tree.Node, tree.Node], Operand]
    operator_call: Callable[[str, list[Any], tree.Node], Operand | None]
    dereferenced: Callable[[Operand, tree.Node], Operand]
    construct: Callable[[Type, list[Any], tree.Node], Operand]

    def value_for(self, node: Any, type_: Type) -> Operand:
        """The value of an initialiser or right-hand side, converted."""
        if isinstance(node, tree.Braces):
            return self.construct(type_, node.items, node)
        return self.converted(self.expr(node), type_, node)

    def assign(self, node: tree.Assign) -> Operand:
        place = self.place(node.target)
        if place is None:
            raise self.refuse(f"{self.text(node.target)} cannot be assigned to", node.target)
        pointer = place.pointer.type if place.kind == "pointer" and place.pointer is not None else None
        if isinstance(pointer, Pointer) and pointer.const and place.variable is None:
            raise self.refuse(f"{self.text(node.target)} is const: it cannot be assigned to", node.target)
        if node.op and isinstance(place.type, Record):
            made = self.operator_call(f"operator{node.op}=", [node.target, node.value], node)
            if made is not None:
                return self.dereferenced(made, node)
        feeding = place.variable is not None and place.variable.key in self.flow.index
        self.in_index += feeding
        try:
            if node.op == "":
                return self.plain_assign(place, node)
            return self.compound_assign(place, node.op, self.expr(node.value), node, node.value, True)
        finally:
            self.in_index -= feeding

    def plain_assign(self, place: Lvalue, node: tree.Assign) -> Operand:
        value = self.value_for(node.value, place.type)
        if place.kind == "register":
            assert place.variable is not None
            self.note_sum(place, value, node)
            return self.register_assign(place.variable, value, node)
        self.note_from_global(place, value)
        self.note_members(place, value)
        locate = self.locator(place)
        put = self.store_at(place, value.from_global)
        fn = value.fn
        shared = place.kind == "shared"
        copies = shared and value.shared and isinstance(place.type, Scalar) and _is_element(node.value)

        pointer = place.pointer if place.kind == "pointer" else None
        through = pointer.fn if pointer is not None and pointer.pure else None

        def run(c: Context) -> Any:
            if shared:
                c.copied = copies
            known = c.shared_read or c.loaded is not None  # otherwise there is nothing to begin anew
            if shared or (known and through is not None and _is_shared(through(c).memory)):
                c.loaded = None
                _begin_phase(c)
                if c.recorder is not None:
                    c.recorder.loads.clear()
            out = fn(c)
            put(c, locate(c), out)
            c.copied = False
            return out

        return Operand(place.type, run, pure=False, shared=value.shared)

    def note_members(self, place: Lvalue, value: Operand) -> None:
        """Copies of a struct's members that are leading dimensions are leading dimensions."""
        variable = place.variable
        if place.kind != "cells" or place.subscripts or variable is None:
            return
        given = {0: value.dimension} if isinstance(place.type, Scalar) else dict(value.members)
        for leaf in range(leaf_count(place.type)):
            self.flow.note_member((variable.key, place.offset + leaf), given.get(leaf))

    def note_from_global(self, place: Lvalue, value: Operand) -> None:
        if (value.loads or value.from_global) and place.variable is not None and place.kind in ("register", "cells"):
            self.flow.add(self.flow.from_global, place.variable.key)

    def note_sum(self, place: Lvalue, value: Operand, node: tree.Assign) -> None:
        """`sum = sum + tile * tile` and `sum = fmaf(…, sum)` count as sums, like `sum += …`."""
        if value.shared and place.variable is not None and place.variable.name in self.text(node.value):
            self.flow.add(self.flow.sums, place.variable.key)

    def compound_assign(
        self, place: Lvalue, op: str, value: Operand, node: tree.Node, vn: tree.Node, prefix: bool
    ) -> Operand:
        """target op= value; the result is the new value, or the old one for a postfix step."""
        if place.kind == "register":
            assert place.variable is not None
            if value.shared:
                self.flow.add(self.flow.sums, place.variable.key)
            old = self.load(place)
            made = self.operate(op, old, value, node, node, vn)
            if isinstance(old.type, Scalar) and not old.type.floating and op in ("+", "-"):
                self.dimension_step(old, value, made, op)
            new = self.converted(made, place.type, node)
            stored = self.register_assign(place.variable, new, node)
            if prefix:
                return stored
            before, store = old.fn, stored.fn

            def postfix(c: Context) -> Any:
                kept = before(c)
                store(c)
                return kept

            return Operand(place.type, postfix, pure=False)
        locate, get = self.locator(place), self.load_at(place)
        cell: list[Any] = [None]
        holder = Operand(place.type, lambda c: cell[0], pure=False, shared=place.kind == "shared")
        if isinstance(place.type, Pointer):
            self.pointer_roots[id(holder)] = frozenset()
            self.kept.append(holder)
        new = self.converted(self.operate(op, holder, value, node, node, vn), place.type, node)
        self.note_from_global(place, value)
        put, fn = self.store_at(place, True), new.fn
        shared, through = place.kind == "shared", place.kind == "pointer"

        def run(c: Context) -> Any:
            if shared:
                _begin_phase(c)
            located = locate(c)
            if through and _is_shared(located[0]):
                _begin_phase(c)
            cell[0] = old = get(c, located)
            out = fn(c)
            put(c, located, out)
            return out if prefix else old

        return Operand(place.type, run, pure=False, shared=value.shared or shared)

    def dimension_step(self, old: Operand, value: Operand, made: Operand, op: str) -> None:
        """`i += ld` may be one row or `ld` columns: counted as one row, and marked as guessed."""
        if value.dimension is None or (old.symbol is not None and old.symbol != value.dimension):
            return
        row, sign = old.row, np.int32(1 if op == "+" else -1)
        made.symbol, made.guessed = value.dimension, True
        made.row = (lambda c: row(c) + sign) if row is not None else (lambda c: sign)

    def step(self, node: tree.Step) -> Operand:
        place = self.place(node.operand)
        if place is None:
            raise self.refuse(f"{self.text(node.operand)} cannot be stepped", node.operand)
        one = self.expr(tree.Number(1, types.INT))
        return self.compound_assign(place, node.op, one, node, node, node.prefix)

    # -- registers

    def register_assign(self, variable: Variable, value: Operand, node: tree.Node, declare: bool = False) -> Operand:
        """Store to a register; with `declare`, its first store, whose mask is kept as the mask of the declaration."""
        key, slot, flow = variable.key, variable.slot, self.flow
        self.assigned[key] = self.assigned.get(key, 0) + 1
        if (value.loads or value.from_global) and isinstance(variable.type, Scalar):
            flow.add(flow.from_global, key)
        if isinstance(variable.type, Pointer):
            roots = self.pointer_roots.get(id(value))
            known = flow.sources.setdefault(key, set())
            new = roots if roots is not None else frozenset({"*"})
            if not new <= known:
                known |= new
                flow.changed = True
        single = flow.assigned.get(key, 0) <= 1
        if value.symbol is not None:
            flow.note_row_symbol(key, value.symbol if value.row is not None else MIXED, value.guessed)
        elif value.dimension is not None and single:
            variable.dimension = value.dimension
        fn = value.fn
        row_slot = variable.row_slot if key in flow.row_symbols and isinstance(variable.type, Scalar) else -1
        row = value.row
        name, line = variable.name, node.span.line
        summed = key in flow.sums and not declare

        def run(c: Context) -> Any:
            out = fn(c)
            if row_slot >= 0:
                rows = row(c) if row is not None else np.int32(0)
                if declare:
                    c.registers[row_slot], c.declared[row_slot] = rows, c.mask
                else:
                    lvalue.register_store(c, row_slot, rows)
            if declare:
                c.registers[slot], c.declared[slot] = out, c.mask
            else:
                lvalue.register_store(c, slot, out)
            if summed and c.recorder is not None:
                c.recorder.sum(c, line, name, c.registers[slot])
            return out

        return Operand(variable.type, run, pure=False, shared=value.shared)

    def zero(self, type_: Type) -> Any:
        """The value of {} for a type: all leaves zero."""
        out = [At(None, np.int64(0)) if d is None else np.dtype(d).type(0) for d in dtypes_of(type_)]
        return lvalue.pack(type_, out)

    def flatten(self, type_: Type, node: Any | None) -> list[Operand]:
        """An initialiser for a type, leaf by leaf."""
        if node is None:
            values = lvalue.unpack(type_, self.zero(type_))
            return [Operand(leaf, _constant(v)) for leaf, v in zip(leaves(type_), values, strict=True)]
        if isinstance(node, tree.Braces) and isinstance(type_, (Array, Record)):
            out, used = self._fill(type_, node.items, 0)
            if used < len(node.items):
                raise self.refuse(f"{len(node.items)} values are too many for {type_}", node)
            return out
        if isinstance(node, tree.Braces):
            if len(node.items) > 1:
                raise self.refuse("too many values", node)
            if not node.items:
                return self.flatten(type_, None)
            node = node.items[0]
        if isinstance(type_, Array):
            raise self.refuse("an array needs braces", node)
        value = self.converted(self.expr(node), type_, node)
        if isinstance(type_, Record):
            fn = value.fn
            return [Operand(leaf, _leaf(fn, i)) for i, leaf in enumerate(leaves(type_))]
        return [value]

    def _fill(self, type_: Array | Record, items: list[Any], at: int) -> tuple[list[Operand], int]:
        """Initialise the parts of an aggregate from the next items; inner braces may be omitted: `a[2][2] = {1, 2}`."""
        parts = [type_.of] * type_.length if isinstance(type_, Array) else [f.type for f in type_.members]
        out: list[Operand] = []
        for part in parts:
            if at >= len(items):
                out.extend(self.flatten(part, None))
            elif (
                isinstance(part, (Array, Record))
                and not isinstance(items[at], tree.Braces)
                and self._plain(items[at], part)
            ):
                inner, at = self._fill(part, items, at)
                out.extend(inner)
            else:
                out.extend(self.flatten(part, items[at]))
                at += 1
        return out, at

    def _plain(self, item: Any, part: Type) -> bool:
        """Whether the item initialises the part's first leaf, not the whole part."""
        return isinstance(part, Array) or not isinstance(self.expr(item).type, Record)


def _constant(value: Any) -> Any:
    return lambda c: value


def _leaf(fn: Any, i: int) -> Any:
    return lambda c: fn(c)[i]
