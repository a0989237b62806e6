"""Operators: arithmetic with C's conversions, short-circuit logic, pointer arithmetic; rows of indices q·LD + r."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.emulator.compile.assign import AssignCompiler
from tilewise.emulator.compile.operand import MIXED, Operand
from tilewise.emulator.compile.vector_ops import binary, masked_pair, memoised, uniform, widen_product
from tilewise.emulator.machine.arithmetic import COMPARISONS, operation
from tilewise.emulator.machine.context import Context
from tilewise.emulator.machine.leaves import leaf_count, leaves
from tilewise.emulator.machine.memory import Pointer as At
from tilewise.emulator.machine.memory import merge
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import BOOL, INT, Pointer, Record, Scalar, Type
from tilewise.errors import EngineError


def cells_of_bytes(c: Context, bytes_: Any, cell: Any) -> Any:
    """A byte offset in cells; an address inside a cell is refused."""
    inside = bytes_ % cell.itemsize != 0
    if np.any(inside if c.mask is None else inside & c.mask):
        raise EngineError(f"an address inside a {cell} is not supported on the machine")
    return bytes_ // cell.itemsize


class OperatorCompiler(AssignCompiler):
    def condition(self, node: Any) -> Operand:
        return self.converted(self.expr(node), BOOL, node)

    @staticmethod
    def constant_value(value: Any, type_: Scalar) -> Operand:
        return Operand(type_, lambda c: value, const=value)

    def arithmetic(self, e: Operand, node: tree.Node) -> Scalar:
        if not isinstance(e.type, Scalar):
            raise self.refuse(f"{self.text(node)} is {e.type}; a number is expected here", node)
        return e.type

    def unary(self, node: tree.Unary) -> Operand:
        if node.op == "*":
            place = self.place(node)
            if place is None:
                made = self.operator_call("operator*", [node.operand], node)
                if made is None:
                    raise self.refuse(f"{self.text(node)} has no value", node)
                return made
            return self.load(place)
        if node.op == "&":
            place = self.place(node.operand)
            if place is None:
                raise self.refuse("only a place has an address", node)
            if place.variable is not None and place.kind == "pointer" and not place.subscripts:
                slot = place.variable.slot
                if place.variable.storage == "reference" and not place.offset:
                    return Operand(Pointer(place.type), lambda c: c.registers[slot])
            return self.address(place, Pointer(place.type))
        e = self.expr(node.operand)
        if isinstance(e.type, Record):
            own = self.operator_call(f"operator{node.op}", [node.operand], node)
            if own is not None:
                return self.dereferenced(own, node)
        if node.op == "!":
            fn = self.converted(e, BOOL, node).fn
            return self.folded(Operand.of(BOOL, lambda c: ~fn(c), e), e)
        type_ = types.promote(self.arithmetic(e, node.operand))
        e = self.converted(e, type_, node)
        if node.op == "+":
            return e
        fn = e.fn
        if node.op == "~":
            if type_.floating:
                raise self.refuse("~ needs an integer", node)
            made = Operand.of(type_, memoised(lambda v: ~v, fn, self.new_memo()), e)
        else:
            made = Operand.of(type_, lambda c: -fn(c), e)
            if e.symbol is not None and e.row is not None:
                row = e.row
                made.symbol, made.row, made.guessed = e.symbol, lambda c: -row(c), e.guessed
        return self.folded(made, e)

    def folded(self, made: Operand, *operands: Operand) -> Operand:
        """Constant folding."""
        if all(e.const is not None for e in operands) and made.pure:
            with np.errstate(all="ignore"):
                value = made.fn(None)  # type: ignore[arg-type]
            made.const, made.fn = value, lambda c: value
        return made

    def binary(self, node: tree.Binary) -> Operand:
        op = node.op
        if op == ",":
            first, second = self.expr(node.left), self.expr(node.right)
            a, b = first.fn, second.fn

            def both(c: Context) -> Any:
                a(c)
                return b(c)

            return Operand.of(second.type, both, first, second)
        if op in ("&&", "||"):
            return self.logical(node)
        left, right = self.expr(node.left), self.expr(node.right)
        if isinstance(left.type, Record) or isinstance(right.type, Record):
            made = self.operator_call(f"operator{op}", [node.left, node.right], node)
            if made is not None:
                return self.dereferenced(made, node)
        return self.operate(op, left, right, node, node.left, node.right)

    def operate(self, op: str, left: Operand, right: Operand, node: tree.Node, ln: tree.Node, rn: tree.Node) -> Operand:
        if isinstance(left.type, Pointer) or isinstance(right.type, Pointer):
            return self.pointer_operation(op, left, right, node)
        a, b = self.arithmetic(left, ln), self.arithmetic(right, rn)
        type_ = types.promote(a) if op in ("<<", ">>") else types.common(a, b)
        function = operation(op, type_)
        if function is None:
            raise self.refuse(f"{op} needs integers", node)
        left, right = self.converted(left, type_, ln), self.converted(right, type_, rn)
        result = BOOL if op in COMPARISONS else type_
        made = Operand.of(result, left.fn, left, right)
        if not type_.floating and op == "*" and type_ is INT and self.in_index:
            function = widen_product(node.span)
            made.fn = binary(function, left.fn, right.fn, self.new_memo(), with_context=True)
            if left.const is not None and right.const is not None:
                with np.errstate(all="ignore"):
                    value = left.const * right.const
                made.const, made.fn = value, lambda c: value
        else:
            memo = self.new_memo() if not type_.floating or op in COMPARISONS else -1
            made.fn = binary(function, left.fn, right.fn, memo)
            self.folded(made, left, right)
        if not type_.floating:
            self.provenance(op, left, right, made)
        return made

    def provenance(self, op: str, left: Operand, right: Operand, made: Operand) -> None:
        """Propagate q·LD + r through an operator; `symbol` is MIXED if two leading dimensions meet. A plain number
        minus q·LD is a remainder, x - x / LD * LD, and so a plain number."""
        if op == "*":
            for ld, other in ((right, left), (left, right)):
                if ld.dimension is not None:
                    made.symbol, made.row = ld.dimension, other.fn if other.pure else None
                    break
            else:
                for product, other in ((left, right), (right, left)):
                    if product.symbol is not None and product.row is not None and other.symbol is None and other.pure:
                        made.symbol, made.guessed = product.symbol, product.guessed
                        made.row = binary(np.multiply, product.row, other.fn, self.new_memo())
                        break
        elif op in ("+", "-"):
            a, b = left, right
            if a.symbol is not None and b.symbol is not None:
                if a.symbol == b.symbol and a.row is not None and b.row is not None:
                    made.symbol, made.guessed = a.symbol, a.guessed or b.guessed
                    function = np.add if op == "+" else np.subtract
                    made.row = binary(function, a.row, b.row, self.new_memo())
                else:
                    made.symbol = MIXED
            elif a.symbol is not None and a.row is not None:
                made.symbol, made.row, made.guessed = a.symbol, a.row, a.guessed or b.dimension == a.symbol
            elif b.symbol is not None and b.row is not None and op == "+":
                made.symbol, made.row, made.guessed = b.symbol, b.row, b.guessed or a.dimension == b.symbol
        if made.symbol is not None and made.row is None:
            made.symbol = MIXED

    def logical(self, node: tree.Binary) -> Operand:
        left, right = self.condition(node.left), self.condition(node.right)
        conjunction = node.op == "&&"
        a, b = left.fn, right.fn
        memo, pure = self.new_memo(), right.pure

        def run(c: Context) -> Any:
            x = a(c)
            if not isinstance(x, np.ndarray):
                return (b(c) if x else x) if conjunction else (x if x else b(c))
            if pure:
                y = b(c)
                known = c.memo[memo]
                if known is not None and known[0] is x and known[1] is y:
                    return known[2]
                out = x & y if conjunction else x | y
                c.memo[memo] = (x, y, out)
                return out
            mask = c.mask
            need = x if conjunction else ~x
            inner = need if mask is None else need & mask
            if not inner.any():
                return x
            c.mask = inner
            y = b(c)
            c.mask = mask
            return x & y if conjunction else x | y

        if left.const is not None and right.const is not None:
            value = np.bool_((left.const and right.const) if conjunction else (left.const or right.const))
            return self.constant_value(value, BOOL)
        return Operand.of(BOOL, run, left, right)

    def ternary(self, node: tree.Ternary) -> Operand:
        condition = self.condition(node.condition)
        yes, no = self.expr(node.yes), self.expr(node.no)
        if isinstance(yes.type, Scalar) and isinstance(no.type, Scalar):
            type_: Type = types.common(yes.type, no.type) if yes.type != no.type else yes.type
            yes, no = self.converted(yes, type_, node.yes), self.converted(no, type_, node.no)
        elif isinstance(yes.type, Pointer):
            no = self.converted(no, yes.type, node.no)
        elif yes.type != no.type:
            raise self.refuse(f"one branch is {yes.type}, the other {no.type}", node)
        a, b, x = yes.fn, no.fn, condition.fn
        both_pure = yes.pure and no.pure
        memo = self.new_memo()

        def run(c: Context) -> Any:
            which = x(c)
            if not isinstance(which, np.ndarray):
                return a(c) if which else b(c)
            if both_pure:
                return merge(which, a(c), b(c))
            return masked_pair(c, which, a, b, memo)

        made = Operand.of(yes.type, run, yes, no, pure=condition.pure)
        if condition.const is not None:
            return yes if condition.const else no
        symbols = {e.symbol for e in (yes, no) if e.symbol is not None}
        if len(symbols) == 1 and yes.row is not None and no.row is not None:
            ra, rb = yes.row, no.row
            made.symbol, made.guessed = symbols.pop(), yes.guessed or no.guessed
            made.row = lambda c: ra(c) if uniform(x(c)) and x(c) else np.where(x(c), ra(c), rb(c))
        self.copy_roots(yes, made)
        self.copy_roots(no, made)
        return made

    def pointer_operation(self, op: str, left: Operand, right: Operand, node: tree.Node) -> Operand:
        a, b = left.fn, right.fn
        if isinstance(left.type, Pointer) and isinstance(right.type, Pointer):
            if op == "-":
                size = leaf_count(left.type.to)
                return Operand(types.LONG, lambda c: (a(c).offset - b(c).offset) // np.int64(size))
            if op in COMPARISONS:
                compare = COMPARISONS[op]

                def run(c: Context) -> Any:
                    p, q = a(c), b(c)
                    if p.memory is not q.memory:
                        same = q.null if p.memory is None else p.null if q.memory is None else np.bool_(False)
                        return same if op == "==" else ~same if op == "!=" else np.bool_(op in ("<", "<="))
                    return compare(p.offset, q.offset)

                return Operand.of(BOOL, run, left, right)
        if isinstance(right.type, Pointer) and op == "+":
            left, right = right, left
        if op in ("==", "!=") and isinstance(left.type, Pointer) and right.const is not None:
            fn = left.fn
            return Operand(BOOL, lambda c: fn(c).null == (op == "=="))
        if op not in ("+", "-") or not isinstance(left.type, Pointer):
            raise self.refuse(f"{op} has no meaning for a pointer", node)
        return self.moved(left, right, op, node)

    def moved(self, left: Operand, right: Operand, op: str, node: tree.Node) -> Operand:
        """pointer ± integer."""
        assert isinstance(left.type, Pointer)
        self.arithmetic(right, node)
        self.note_usage(left, right)
        step = leaf_count(left.type.to)
        leaf = leaves(left.type.to)
        size = leaf[0].size if leaf else 1
        a, b, row, symbol, guessed = left.fn, right.fn, right.row, right.symbol, right.guessed
        if symbol is None and right.dimension is not None:
            symbol, row, guessed = right.dimension, lambda c: np.int32(1), True
        mixed = symbol == MIXED
        sign = 1 if op == "+" else -1

        def run(c: Context) -> Any:
            pointer, by = a(c), b(c).astype(np.int64)
            cell = getattr(getattr(pointer.memory, "data", None), "dtype", None)
            if cell is not None and size < cell.itemsize:  # (char*)a + y * pitch
                cells = cells_of_bytes(c, by * (step * size * sign), cell)
                return At(pointer.memory, pointer.offset + cells, None, None, True, pointer.nulls)
            ratio = max(1, size // cell.itemsize) if cell is not None else 1
            cells = by * (step * ratio * sign)
            if mixed:
                return At(pointer.memory, pointer.offset + cells, None, None, True, pointer.nulls)
            if symbol is None:
                return pointer.moved(cells)
            assert row is not None
            rows = row(c)
            return pointer.moved(cells, rows if sign > 0 else -rows, symbol, guessed)

        made = Operand.of(left.type, run, left, right)
        self.copy_roots(left, made)
        if id(left) in self.narrowed:
            self.narrowed[id(made)] = self.narrowed[id(left)]
            self.kept.append(made)
        return made

    def copy_roots(self, e: Operand, made: Operand) -> None:
        roots = self.pointer_roots.get(id(e))
        if roots is not None:
            self.pointer_roots[id(made)] = self.pointer_roots.get(id(made), frozenset()) | roots
            self.kept.append(made)
