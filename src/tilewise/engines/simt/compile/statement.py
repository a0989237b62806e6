"""Statements. Running one gives True while lanes go on after it; the mask then says which.

break, continue and return take lanes away; loops and calls give them back where C does."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.engines.simt.compile.call import CallCompiler, merge_return
from tilewise.engines.simt.compile.operand import Operand
from tilewise.engines.simt.compile.vector_ops import split
from tilewise.engines.simt.frontend import ctype
from tilewise.engines.simt.frontend.ctype import Array, Pointer, Reference, Scalar, Struct, Type
from tilewise.engines.simt.frontend.syntax import (
    AutoType,
    Block,
    Braces,
    Case,
    Declaration,
    Declarator,
    ExprStmt,
    For,
    If,
    Jump,
    Node,
    Opaque,
    Return,
    Stmt,
    Switch,
    While,
)  # fmt: skip
from tilewise.engines.simt.machine.context import Context, Loop
from tilewise.engines.simt.machine.control import Run, loop, nothing, sequence, union
from tilewise.engines.simt.machine.memory import UNSET, Cells
from tilewise.engines.simt.machine.program import Variable


class StmtCompiler(CallCompiler):
    def function_body(self, node: Block) -> Run:
        kept = self.loop_depth, self.switch_depth
        self.loop_depth = self.switch_depth = 0
        try:
            return self.block(node)
        finally:
            self.loop_depth, self.switch_depth = kept

    def statement(self, node: Stmt) -> Run:
        if isinstance(node, ExprStmt):
            return self.expression_statement(node)
        if isinstance(node, Declaration):
            return self.declaration(node)
        if isinstance(node, Block):
            return self.block(node)
        if isinstance(node, If):
            return self.if_(node)
        if isinstance(node, For):
            return self.for_(node)
        if isinstance(node, While):
            return self.while_(node)
        if isinstance(node, Switch):
            return self.switch(node)
        if isinstance(node, Return):
            return self.return_(node)
        if isinstance(node, Jump):
            return self.jump(node)
        if isinstance(node, Case):
            raise self.refuse("case outside a switch", node)
        if isinstance(node, Opaque):
            raise self.refuse(node.reason, node)
        raise self.refuse("this statement is not supported", node)

    def block(self, node: Block) -> Run:
        self.scopes.append({})
        try:
            runs = [self.statement(s) for s in node.body]
        finally:
            self.scopes.pop()
        return sequence(runs)

    def expression_statement(self, node: ExprStmt) -> Run:
        fn, line = self.expr(node.value).fn, node.span.line

        def run(c: Context) -> bool:
            c.tick(line)
            fn(c)
            return True

        return run

    # -- declarations

    def declaration(self, node: Declaration) -> Run:
        runs = [r for item in node.items if (r := self.declare(item, node.words, node)) is not None]
        line = node.span.line

        def run(c: Context) -> bool:
            c.tick(line)
            for r in runs:
                r(c)
            return True

        return run if runs else nothing

    def declare(self, item: Declarator, words: frozenset[str], node: Node) -> Any:
        if "__shared__" in words:
            return self.declare_shared(item, words)
        if item.name in self.scopes[-1]:
            raise self.refuse(f"{item.name} is declared twice", item)
        if isinstance(item.type, AutoType):
            assert item.init is not None
            given = self.expr(item.init)
            variable = self.new_variable(item.name, given.type, id(item))
            self.scopes[-1][item.name] = variable
            return self.initialise(variable, given, item)
        type_ = self.resolve(item.type)
        if isinstance(type_, Reference):
            return self.declare_reference(item, type_)
        if isinstance(type_, ctype.Void):
            raise self.refuse(f"{item.name} cannot be void", item)
        if isinstance(type_, Array) and type_.length == 0 and isinstance(item.init, Braces):
            type_ = Array(type_.of, len(item.init.items))
        feeding = (*self.path, id(item)) in self.flow.index
        self.in_index += feeding
        try:
            value = self.first_value(item, type_)
        finally:
            self.in_index -= feeding
        if "constexpr" in words or "const" in words:
            made = self.named_constant(item, type_, value)
            if made:
                return None
        variable = self.new_variable(item.name, type_, id(item))
        self.scopes[-1][item.name] = variable
        if value is not None:
            return self.initialise(variable, value, item)
        return self.blank(variable)

    def named_constant(self, item: Declarator, type_: Type, value: Operand | None) -> bool:
        key = (*self.path, id(item))
        if value is None or value.const is None or not isinstance(type_, Scalar) or key in self.flow.boxed:
            return False
        variable = Variable(item.name, type_, key, -1, "constant", const=value.const, bare=value.bare)
        self.scopes[-1][item.name] = variable
        return True

    def first_value(self, item: Declarator, type_: Type) -> Operand | None:
        if item.arguments is not None:
            return self.construct(type_, item.arguments, item)
        if item.init is None:
            return None
        if isinstance(type_, (Array, Struct)) and isinstance(item.init, Braces):
            parts = self.flatten(type_, item.init)
            fns = [p.fn for p in parts]
            return Operand(type_, lambda c: tuple(f(c) for f in fns), pure=False, loads=any(p.loads for p in parts))
        return self.value_for(item.init, type_)

    def blank(self, variable: Variable) -> Any:
        """A variable without a first value."""
        slot, row_slot = variable.slot, variable.row_slot
        if variable.storage == "cells":
            dtypes, name, dims = ctype.dtypes_of(variable.type), variable.name, variable.dims

            def cells(c: Context) -> None:
                made = Cells(name, len(dtypes), dtypes, dims)
                made.mask = c.mask
                c.f[slot] = made

            return cells

        def register(c: Context) -> None:
            c.f[slot], c.declared[slot] = UNSET, c.mask
            if row_slot >= 0:
                c.f[row_slot], c.declared[row_slot] = UNSET, c.mask

        return register

    def declare_reference(self, item: Declarator, type_: Reference) -> Any:
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

    def declare_shared(self, item: Declarator, words: frozenset[str]) -> None:
        type_ = self.resolve(item.type)
        if item.init is not None:
            raise self.refuse("a shared variable cannot have a first value", item)
        dims: list[int] = []
        inner = type_
        while isinstance(inner, Array):
            dims.append(inner.length)
            inner = inner.of
        count = ctype.leaf_count(inner)
        kinds = set(ctype.dtypes_of(inner))
        if None in kinds or len(kinds) != 1:
            raise self.refuse(f"shared memory for {inner} is not supported", item)
        external = "extern" in words and dims[:1] == [0]
        if isinstance(type_, Array) and dims and 0 in dims and not external:
            raise self.refuse(f"{item.name} has no size", item)
        if count > 1:
            dims.append(count)
        self.shared.append((item.name, type_, tuple(dims), external))
        variable = Variable(item.name, type_, (*self.path, id(item)), -1, "shared", buffer=len(self.shared) - 1)
        if external:  # its length is the launch's: behave like a pointer to its start
            variable = Variable(
                item.name, type_, (*self.path, id(item)), -1, "shared", buffer=len(self.shared) - 1, dims=(0,)
            )
        self.scopes[-1][item.name] = variable

    def new_variable(self, name: str, type_: Type, identity: int) -> Variable:
        key = (*self.path, identity)
        aggregate = isinstance(type_, (Array, Struct))
        storage = "cells" if aggregate or key in self.flow.boxed else "register"
        row_slot = self.new_slot() if storage == "register" and isinstance(type_, Scalar) else -1
        dims: list[int] = []
        inner = type_
        while isinstance(inner, Array):
            dims.append(inner.length)
            inner = inner.of
        if ctype.leaf_count(type_) > 1 << 16:
            raise self.source.error(f"{name}: a local array of {ctype.leaf_count(type_)} elements is too large", 1, 1)
        return Variable(name, type_, key, self.new_slot(), storage, row_slot, dims=tuple(dims))

    def parameter_variable(self, name: str, type_: Type, identity: int) -> Variable:
        if isinstance(type_, Reference):
            return Variable(name, type_.to, (*self.path, identity), self.new_slot(), "reference")
        return self.new_variable(name, type_, identity)

    # -- branches

    def if_(self, node: If) -> Run:
        condition = self.condition(node.condition)
        self.scopes.append({})
        yes = self.statement(node.yes)
        self.scopes[-1] = {}
        no = self.statement(node.no) if node.no is not None else nothing
        self.scopes.pop()
        if condition.const is not None:
            return yes if condition.const else no
        site = self.new_site(node)
        fn, memo, line, number = condition.fn, self.new_memo(), node.span.line, site.number

        def run(c: Context) -> bool:
            c.tick(line)
            which = fn(c)
            if not isinstance(which, np.ndarray):
                return yes(c) if which else no(c)
            mask = c.mask
            taken, any_taken, rest, any_rest = split(c, which, memo)
            if c.costs is not None:
                c.costs.branch(number, which if mask is None else which & mask, mask, c.n)
            if not any_taken:
                return no(c)
            if not any_rest:
                return yes(c)
            c.mask = taken
            first = yes(c)
            after = c.mask
            c.mask = rest
            second = no(c)
            if first and second:
                c.mask = mask if after is taken and c.mask is rest else union([after, c.mask])
                return True
            if first:
                c.mask = after
            return first or second

        return run

    def switch(self, node: Switch) -> Run:
        value = self.expr(node.value)
        type_ = ctype.promote(self.arithmetic(value, node.value))
        fn = self.converted(value, type_, node.value).fn
        self.scopes.append({})
        self.switch_depth += 1
        parts: list[tuple[Any, Run | None]] = []
        labels: list[int] = []
        for statement in node.body:
            if isinstance(statement, Case):
                label = None if statement.value is None else self.constant(statement.value)
                if label is not None:
                    labels.append(label)
                parts.append((label, None))
            else:
                parts.append((None, self.statement(statement)))
        self.scopes.pop()
        self.switch_depth -= 1
        line = node.span.line

        def run(c: Context) -> bool:
            c.tick(line)
            which = np.broadcast_to(np.asarray(fn(c)), (c.n,))
            mask = c.mask
            every = np.ones(c.n, np.bool_) if mask is None else mask
            waiting = every
            frame = c.frames[-1]
            version = frame.version
            loop = Loop()
            c.loops.append(loop)
            current: Any = np.zeros(c.n, np.bool_)
            for label, part in parts:
                if part is None:
                    chosen = ~np.isin(which, labels) if label is None else which == label
                    current = current | (waiting & chosen)
                elif current.any():
                    c.mask = current
                    alive = part(c)
                    current = c.mask if alive else np.zeros(c.n, np.bool_)
                    if current is None:
                        current = np.ones(c.n, np.bool_)
            c.loops.pop()
            if loop.continued and c.loops:
                c.loops[-1].continued.extend(loop.continued)
                gone = union(loop.continued)
                every = every & ~gone if gone is not None else np.zeros(c.n, np.bool_)
            if frame.version != version:
                gone = frame.returned
                every = np.zeros(c.n, np.bool_) if gone is True else every & ~gone
            if not every.any():
                return False
            c.mask = mask if mask is None and every.all() else every
            return True

        return run

    # -- loops

    def for_(self, node: For) -> Run:
        self.scopes.append({})
        init = self.statement(node.init) if node.init is not None else nothing
        condition = self.condition(node.condition).fn if node.condition is not None else None
        self.loop_depth += 1
        body = self.statement(node.body)
        self.loop_depth -= 1
        step = self.expr(node.step).fn if node.step is not None else None
        self.scopes.pop()
        run_loop = loop(condition, body, step, False, node.span.line)

        def run(c: Context) -> bool:
            init(c)
            return run_loop(c)

        return run

    def while_(self, node: While) -> Run:
        self.scopes.append({})
        condition = self.condition(node.condition).fn
        self.loop_depth += 1
        body = self.statement(node.body)
        self.loop_depth -= 1
        self.scopes.pop()
        return loop(condition, body, None, node.after, node.span.line)

    def jump(self, node: Jump) -> Run:
        word = node.word
        if self.loop_depth == 0 and not (word == "break" and self.switch_depth):
            raise self.refuse(f"{word} outside a loop", node)

        def run(c: Context) -> bool:
            if word == "continue":
                c.loops[-1].continued.append(c.mask)
            return False

        return run

    def return_(self, node: Return) -> Run:
        expected = self.returns[-1]
        fn: Any = None
        if node.value is not None:
            if expected is None:
                value = self.expr(node.value)
                self.returns[-1] = value.type
            elif isinstance(expected, ctype.Void):
                raise self.refuse("a kernel or void function returns no value", node)
            else:
                value = self.value_for(node.value, expected)
            fn = value.fn
            self.note_returned(value)
        line = node.span.line

        def run(c: Context) -> bool:
            c.tick(line)
            merge_return(c, fn(c) if fn is not None else None)
            if len(c.frames) == 1:
                if c.mask is None:
                    c.exited = np.ones(c.n, np.bool_)
                else:
                    c.exited = c.mask if c.exited is None else c.exited | c.mask
            return False

        return run

    def note_returned(self, value: Operand) -> None:
        known = self.returned_members[-1]
        agreed = value.members if known is None else {k: v for k, v in known.items() if value.members.get(k) == v}
        self.returned_members[-1] = dict(agreed)

    loop_depth: int
    switch_depth: int
