"""The symbol table with the meaning of types and constants."""

from __future__ import annotations

from tilewise.emulator.parse import tree
from tilewise.emulator.parse.types import Type
from tilewise.emulator.sema import constants, layout, type_resolution
from tilewise.emulator.sema.symbol_table import Environment, SymbolTable


class Semantics(SymbolTable):
    resolve = type_resolution.resolve
    lay_out = layout.lay_out
    evaluate = constants.evaluate

    def type_of(self, node: tree.Node, env: Environment) -> Type:
        raise self.refusal("decltype is supported in functions only", node.line, max(1, node.column))
