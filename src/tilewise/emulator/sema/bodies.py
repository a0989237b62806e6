"""Function bodies, parsed when first needed: all file-level names are known then."""

from __future__ import annotations

from tilewise.emulator.parse import read_statement, tree
from tilewise.emulator.parse.packed_body import tokens_of
from tilewise.emulator.parse.parser import Parser
from tilewise.emulator.sema.symbol_table import Environment, SymbolTable
from tilewise.emulator.source.lexer import Token


def body_of(p: SymbolTable, node: tree.Function, env: Environment, lenient: bool = False) -> tree.Block:
    if node.body is not None:  # a lambda's
        return node.body  # type: ignore[no-any-return]
    if (node, lenient) not in p.bodies:  # a body read leniently may lack statements
        if node.tokens is None:
            raise p.refusal(f"{node.name} is declared and never defined", node.line, max(1, node.column))
        tokens = tokens_of(node.tokens)
        end = Token("end", "", tokens[-1].line, tokens[-1].column)
        reader = Parser(p.source, [*tokens, end], p.names, p.entities, node.scope, node.library)
        reader.lenient = lenient
        for record in env.record.lineage if env.record is not None else ():
            if record.node is not None:
                name = record.node.name.rpartition("::")[2]
                reader.local_types[0] |= {name, *record.node.types}
                if record.node.template:
                    reader.local_templates.add(name)
        for template in (*node.template, *(node.owner.template if node.owner is not None else ())):
            (reader.local_types if template.is_type else reader.local_values)[0].add(template.name)
            if template.templated:
                reader.local_templates.add(template.name)
        reader.local_values[0] |= {q.name for q in node.parameters}
        p.bodies[node, lenient] = read_statement.block(reader)
    return p.bodies[node, lenient]
