"""Statements. Running one returns whether any lanes continue after it; the mask then says which.

break, continue and return deactivate lanes; loops and calls reactivate them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.emulator.compile.declaration import DeclarationCompiler
from tilewise.emulator.compile.inline import merge_return
from tilewise.emulator.compile.operand import Operand
from tilewise.emulator.compile.vector_ops import split
from tilewise.emulator.machine.context import Context, Loop
from tilewise.emulator.machine.control import Run, loop, nothing, sequence, union
from tilewise.emulator.parse import tree, types


class StmtCompiler(DeclarationCompiler):
    def function_body(self, node: tree.Block) -> Run:
        kept = self.loop_depth, self.switch_depth
        self.loop_depth = self.switch_depth = 0
        try:
            return self.block(node)
        finally:
            self.loop_depth, self.switch_depth = kept

    def statement(self, node: Any) -> Run:
        name = STATEMENTS.get(type(node))
        if name is None:
            raise self.refuse("this statement is not supported", node)
        run: Run = getattr(self, name)(node)
        return run

    def stray_case(self, node: tree.Case) -> Run:
        raise self.refuse("case outside a switch", node)

    def block(self, node: tree.Block) -> Run:
        self.scopes.append({})
        try:
            runs = [self.statement(s) for s in node.body]
        finally:
            self.scopes.pop()
        return sequence(runs)

    def expression_statement(self, node: tree.Expression) -> Run:
        fn, line = self.expr(node.value).fn, node.span.line

        def run(c: Context) -> bool:
            c.tick(line)
            fn(c)
            return True

        return run

    # -- branches

    def if_(self, node: tree.If) -> Run:
        if node.init is not None:  # if (int i = …; i < n)
            plain = node.updated(init=None)
            return self.block(tree.Block([node.init, plain]))
        if isinstance(node.condition, tree.Declaration):
            return self.block(tree.Block([node.condition, node.updated(condition=named(node.condition))]))
        condition = self.condition(node.condition)
        if node.constant and condition.const is not None:  # if constexpr: the other branch is not compiled
            taken = node.yes if condition.const else node.no
            return self.block(tree.Block([taken])) if taken is not None else nothing
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

    def switch(self, node: tree.Switch) -> Run:
        value = self.expr(node.value)
        type_ = types.promote(self.arithmetic(value, node.value))
        fn = self.converted(value, type_, node.value).fn
        self.scopes.append({})
        self.switch_depth += 1
        parts: list[tuple[Any, Run | None]] = []
        labels: list[int] = []
        for statement in node.body.body if isinstance(node.body, tree.Block) else [node.body]:
            if isinstance(statement, tree.Case):
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

    def for_(self, node: tree.For) -> Run:
        self.scopes.append({})
        init = self.statement(node.init) if node.init is not None else nothing
        run_loop = self.loop(node, node.step, False)
        self.scopes.pop()

        def run(c: Context) -> bool:
            init(c)
            return run_loop(c)

        return run

    def while_(self, node: tree.While) -> Run:
        self.scopes.append({})
        run_loop = self.loop(node, None, node.after)
        self.scopes.pop()
        return run_loop

    def loop(self, node: tree.For | tree.While, step: Any, after: bool) -> Run:
        condition = self.condition(node.condition).fn if node.condition is not None else None
        self.loop_depth += 1
        body = self.statement(node.body)
        self.loop_depth -= 1
        return loop(condition, body, self.expr(step).fn if step is not None else None, after, node.span.line)

    def jump(self, node: tree.Jump) -> Run:
        keyword = node.keyword
        if self.loop_depth == 0 and not (keyword == "break" and self.switch_depth):
            raise self.refuse(f"{keyword} outside a loop", node)

        def run(c: Context) -> bool:
            if keyword == "continue":
                c.loops[-1].continued.append(c.mask)
            return False

        return run

    def return_(self, node: tree.Return) -> Run:
        expected = self.returns[-1]
        fn: Any = None
        if node.value is not None:
            if expected is None:
                value = self.expr(node.value)
                self.returns[-1] = value.type
            elif isinstance(expected, types.Reference):
                place = self.place(node.value)
                if place is None:
                    raise self.refuse("a reference to a temporary is returned", node)
                value = self.address(place, types.Pointer(place.type))
            elif expected is types.VOID:
                raise self.refuse("a kernel or void function returns no value", node)
            else:
                value = self.value_for(node.value, expected)
            fn = value.fn
            self.note_returned(value)
        elif expected not in (None, types.VOID):
            raise self.refuse(f"return needs a value: the function gives {expected}", node)
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

    def nothing(self, node: tree.Nothing) -> Run:
        return nothing

    def goto(self, node: tree.Node) -> Run:
        raise self.refuse("goto is not supported", node)

    loop_depth: int
    switch_depth: int


def named(declared: tree.Declaration) -> tree.Name:
    """The name of the variable that a condition declares."""
    item = declared.items[0]
    return tree.Name(item.name, line=item.line, column=item.column)


STATEMENTS: dict[type, str] = {  # node type -> method
    tree.Nothing: "nothing", tree.Label: "goto", tree.Goto: "goto",
    tree.Expression: "expression_statement", tree.Declaration: "declaration", tree.Block: "block", tree.If: "if_",
    tree.For: "for_", tree.While: "while_", tree.Switch: "switch", tree.Return: "return_", tree.Jump: "jump",
    tree.Case: "stray_case",
}  # fmt: skip
