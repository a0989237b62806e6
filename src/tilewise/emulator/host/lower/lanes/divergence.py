"""Divergence analysis: which variables of a kernel are uniform over the lanes, and which loops lanes leave separately.

A region is code that only some lanes run: under a varying condition, or in a loop that lanes leave in different
iterations. A variable varies if it is assigned a varying value, or assigned in another region than its declaration's.
The analysis is repeated until nothing changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.values import NotInLockstep
from tilewise.emulator.parse import tree
from tilewise.emulator.sema.pure_functions import PURE

BARRIER = "__syncthreads"


@dataclass
class Declared:
    node: Any
    region: int
    array: bool = False


@dataclass
class EnclosingLoop:
    node: Any
    region: int


class Divergence:
    def __init__(self, b: Builder, parameters: list[Any], body: Any, one_row: bool) -> None:
        self.b = b
        self.one_row = one_row  # all lanes of a group have the same threadIdx.y and .z
        self.varying_variables: set[int] = set()  # ids of declarations
        self.reassigned: set[int] = set()  # ids of declarations that are assigned after their initialisation
        self.divergent_loops: set[int] = set()  # ids of loops that lanes leave in different iterations
        self.changed = True
        while self.changed:
            self.changed = False
            self.varying_nodes: set[int] = set()  # ids of expressions
            self.regions = 1
            self.region = 0
            self.loops: list[EnclosingLoop] = []
            self.scopes: list[dict[str, Declared]] = [{p.name: Declared(p, 0) for p in parameters}]
            self.statement(body)

    def _add(self, found: set[int], node: Any) -> None:
        if id(node) not in found:
            found.add(id(node))
            self.changed = True

    def _find(self, name: str) -> Declared | None:
        return next((s[name] for s in reversed(self.scopes) if name in s), None)

    @contextmanager
    def _scope(self, enter: bool) -> Iterator[None]:
        """A scope, in a region of its own if `enter`."""
        outer = self.region
        if enter:
            self.region = self.regions
            self.regions += 1
        self.scopes.append({})
        yield
        self.scopes.pop()
        self.region = outer

    # -- statements

    def statement(self, node: Any) -> None:
        if node is None or isinstance(node, tree.Nothing):
            return
        handlers: dict[type, Any] = {
            tree.Block: self._block, tree.Expression: self._expression, tree.Declaration: self._declaration,
            tree.If: self._if, tree.For: self._loop, tree.While: self._loop, tree.Jump: self._jump,
            tree.Return: self._expression,
        }  # fmt: skip
        handler = handlers.get(type(node))
        if handler is None:
            raise NotInLockstep(f"{type(node).__name__} at line {node.line}")
        handler(node)

    def _block(self, node: tree.Block) -> None:
        with self._scope(False):
            for item in node.body:
                self.statement(item)

    def _expression(self, node: tree.Expression | tree.Return) -> None:
        self.varies(node.value)

    def _declaration(self, node: tree.Declaration) -> None:
        for item in node.items:
            shared = "__shared__" in item.specifiers
            array = isinstance(item.type, tree.TypeArray) and not shared and "static" not in item.specifiers
            given = item.init if item.init is not None else item.arguments
            varies = given is not None and self.varies(given)
            if varies:
                self._add(self.varying_variables, item)
            self.scopes[-1][item.name] = Declared(item, self.region, array)

    def _if(self, node: tree.If) -> None:
        if node.init is not None or isinstance(node.condition, tree.Declaration):
            raise NotInLockstep(f"a variable declared in a condition at line {node.line}")
        divergent = self.varies(node.condition)
        for side in (node.yes, node.no):
            if side is not None:
                with self._scope(divergent):
                    self.statement(side)

    def _loop(self, node: Any) -> None:
        if isinstance(node.condition, tree.Declaration):
            raise NotInLockstep(f"a variable declared in a condition at line {node.line}")
        divergent = id(node) in self.divergent_loops
        with self._scope(divergent):
            if isinstance(node, tree.For):
                self.statement(node.init)
            if node.condition is not None and self.varies(node.condition):
                self._add(self.divergent_loops, node)
            with self._scope(divergent):
                self.loops.append(EnclosingLoop(node, self.region))
                self.statement(node.body)
                self.loops.pop()
            if isinstance(node, tree.For) and node.step is not None:
                self.varies(node.step)

    def _jump(self, node: tree.Jump) -> None:
        if not self.loops:
            raise NotInLockstep(f"{node.keyword} at line {node.line}")
        if self.loops[-1].region != self.region:
            self._add(self.divergent_loops, self.loops[-1].node)

    # -- expressions

    def varies(self, node: Any) -> bool:
        """Whether its value may differ between lanes. Records the variables that it assigns."""
        out = self._varies(node)
        if out:
            self.varying_nodes.add(id(node))
        return out

    def _varies(self, node: Any) -> bool:
        if isinstance(node, (list, tuple)):
            return self._any(node)
        if not isinstance(node, tree.Node):
            return False
        if isinstance(node, tree.Name):
            return self._name(node)
        if isinstance(node, (tree.Assign, tree.Step)):
            return self._assign(node)
        if isinstance(node, tree.Call):
            return self._call(node)
        if isinstance(node, tree.Member) and isinstance(node.base, tree.Name) and node.base.name == "threadIdx":
            if node.name not in ("x", "y", "z"):
                raise NotInLockstep(f"threadIdx.{node.name} at line {node.line}")
            return node.name == "x" or not self.one_row
        if isinstance(node, tree.SizeOf) and node.operand is not None:
            raise NotInLockstep(f"sizeof of a value at line {node.line}")
        if isinstance(node, (tree.SizeOf, tree.TypeName, tree.TypeFixed, tree.TypePointer, tree.TypeConst)):
            return False
        if isinstance(node, tree.Ternary) or (isinstance(node, tree.Binary) and node.op in ("&&", "||")):
            return self._conditional(node)
        if isinstance(node, (tree.Lambda, tree.New, tree.Delete, tree.Throw, tree.Launch, tree.This)):
            raise NotInLockstep(f"{type(node).__name__} at line {node.line}")
        return self._any([getattr(node, name) for name in node.__slots__])

    def _any(self, nodes: Any) -> bool:
        out = False
        for node in nodes:  # not any(): each is visited, since it may assign
            out = self.varies(node) or out
        return out

    def _name(self, node: tree.Name) -> bool:
        if node.name == "threadIdx":
            raise NotInLockstep(f"threadIdx as a whole at line {node.line}")
        found = self._find(node.name)
        return found is not None and (found.array or id(found.node) in self.varying_variables)

    def _conditional(self, node: Any) -> bool:
        first, rest = (
            (node.condition, [node.yes, node.no]) if isinstance(node, tree.Ternary) else (node.left, [node.right])
        )
        out = divergent = self.varies(first)
        for side in rest:
            with self._scope(divergent):
                out = self.varies(side) or out
        return out

    def _assign(self, node: Any) -> bool:
        target = node.target if isinstance(node, tree.Assign) else node.operand
        varies = self.varies(node.value) if isinstance(node, tree.Assign) else False
        root = target
        while isinstance(root, tree.Member) and not root.arrow:
            root = root.base
        found = self._find(root.name) if isinstance(root, tree.Name) else None
        if found is None:
            return self.varies(target) or varies
        self.reassigned.add(id(found.node))
        if varies or found.region != self.region:
            self._add(self.varying_variables, found.node)
        return id(found.node) in self.varying_variables

    def _call(self, node: tree.Call) -> bool:
        given = self.varies(node.arguments)
        if not isinstance(node.function, tree.Name):
            raise NotInLockstep(f"a call that is not by a function's name at line {node.line}")
        name = node.function.name
        if self._find(name) is not None:
            raise NotInLockstep(f"a call through the variable {name} at line {node.line}")
        if name == BARRIER:
            if self.region:
                raise NotInLockstep(f"a barrier that only some threads may reach at line {node.line}")
            return False
        return given or name.rpartition("::")[2] not in PURE or not self.b.is_library(name)
