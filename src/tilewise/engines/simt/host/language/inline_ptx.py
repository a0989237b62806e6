"""asm("..." : outputs : inputs): the usual instructions of PTX, each written as the statement of C that does the same.

The statement is made of text, then of tokens in which an operand stands for the program's own tokens: what is wrong in
an operand is told where the program has it. Registers that the text declares are variables of a block."""

from __future__ import annotations

import ast
import re
import struct
from dataclasses import dataclass, field
from typing import Any

from tilewise.engines.simt.frontend.lexer import Token, tokenize
from tilewise.engines.simt.frontend.source import Source
from tilewise.engines.simt.host.language.ptx_instructions import FORMS, SPECIAL, TYPES, UnknownInstructionError
from tilewise.engines.simt.host.language.reading import Reader

CLASSES = {"f32": "f", "f64": "d", "pred": "p", "b64": "l", "u64": "l", "s64": "l", "b16": "h", "u16": "h", "s16": "h"}
FLOAT_LITERAL = re.compile(r"0([fd])([0-9a-fA-F]{8,16})$")
MOST = 64  # instructions of one asm


@dataclass
class Assembly:
    """What one asm names: its operands, with their constraints, and the registers it declares."""

    classes: list[str]
    registers: dict[str, str] = field(default_factory=dict)  # and the class of each

    def kind(self, operand: str) -> str:
        """r, l, h, f, d or p, as constraints name them; '' for what is no register."""
        if re.fullmatch(r"%\d+", operand) and int(operand[1:]) < len(self.classes):
            return self.classes[int(operand[1:])]
        return self.registers.get(operand, "")

    def name(self, operand: str) -> str:
        """An operand as C has it."""
        special = SPECIAL.get(operand.lstrip("%")) if operand.startswith("%") else None
        if special is not None:
            return special
        if self.kind(operand):
            return f"__operand{operand[1:]}" if operand.startswith("%") and operand[1:].isdigit() else _plain(operand)
        literal = FLOAT_LITERAL.match(operand)
        if literal:
            code, size = (">f", 8) if literal[1] == "f" else (">d", 16)
            return repr(struct.unpack(code, bytes.fromhex(literal[2].zfill(size)))[0])
        if re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+(\.\d*)?([eE]-?\d+)?)U?", operand):
            return operand
        raise UnknownInstructionError(operand)

    def read(self, operand: str, type_: str) -> str:
        """An operand's value as one of this type: bits stay what they are where only the register differs."""
        kind, text = self.kind(operand), self.name(operand)
        if kind == "f" and type_ != "f32":
            text = f"__float_as_uint({text})"
        elif kind == "d" and type_ != "f64":
            text = f"__double_as_longlong({text})"
        elif kind == "r" and type_ == "f32":
            text = f"__uint_as_float((unsigned int)({text}))"
        elif kind == "l" and type_ == "f64":
            text = f"__longlong_as_double((long)({text}))"
        return f"(({TYPES[type_]})({text}))"

    def write(self, operand: str, type_: str, value: str) -> str:
        if operand == "_":
            return f"(void)({value});"
        kind = self.kind(operand)
        if not kind:
            raise UnknownInstructionError(operand)
        if kind == "f" and type_ != "f32":
            value = f"__uint_as_float((unsigned int)({value}))"
        elif kind == "d" and type_ != "f64":
            value = f"__longlong_as_double((long)({value}))"
        elif kind == "r" and type_ == "f32":
            value = f"__float_as_uint({value})"
        elif kind == "l" and type_ == "f64":
            value = f"__double_as_longlong({value})"
        return f"{self.name(operand)} = ({value});"


def assembly(reader: Reader) -> list[Token]:
    """Past an asm; the tokens of the block that does the same."""
    start = reader.advance()
    while reader.token.text in ("volatile", "__volatile__", "inline", "goto"):
        reader.advance()
    inside = reader.skip_balanced()[1:-1]
    if reader.at(";"):
        reader.advance()
    parts = _parts(inside)
    code = "".join(str(ast.literal_eval(t.text)) for t in parts[0] if t.kind == "string")
    operands = [_operand(reader, piece) for part in parts[1:3] for piece in _split(part, ",")]
    try:
        text = statements(code, Assembly([kind for kind, _ in operands]), extended=len(parts) > 1)
    except UnknownInstructionError as error:
        raise reader.error(f"{error} in inline assembly is not supported", start) from None
    out: list[Token] = []
    for token in tokenize(Source("", text)):
        if token.kind in ("newline", "end"):
            continue
        number = token.text.removeprefix("__operand")
        if number != token.text and number.isdigit():
            opened, closed = (Token("punct", c, start.line, start.column) for c in "()")
            out += [opened, *operands[int(number)][1], closed]
        else:
            out.append(token.at(start))
    return out


def statements(code: str, unit: Assembly, extended: bool) -> str:
    """The text of a block in C."""
    code = re.sub(r"//[^\n]*|/\*.*?\*/", " ", code, flags=re.S)
    if extended:
        code = code.replace("%%", "%")
    out: list[str] = []
    pieces = [p.strip() for p in re.split(r";", code)]
    if len(pieces) > MOST:
        raise UnknownInstructionError("so long a text")
    for piece in pieces:
        while piece and piece[0] in "{}":
            piece = piece[1:].strip()
        if piece:
            out.append(_statement(piece.rstrip("} \t\n") if piece.count("}") > piece.count("{") else piece, unit))
    declared = [f"{_c_type(kind)} {_plain(name)};" for name, kind in unit.registers.items()]
    return "{" + " ".join([*declared, *out]) + "}"


def _statement(piece: str, unit: Assembly) -> str:
    guard = re.match(r"@(!?)(%?\w+)\s+(.*)", piece, re.S)
    if guard:
        return f"if ({guard[1]}{unit.name(guard[2])}) {{ {_statement(guard[3], unit)} }}"
    words = piece.split(None, 1)
    opcode = words[0].split(".")
    if words[0] == ".reg":
        kind, names = words[1].split(None, 1)
        for name in names.split(","):
            many = re.fullmatch(r"\s*(%?\w+)<(\d+)>\s*", name)
            made = [f"{many[1]}{i}" for i in range(min(int(many[2]), MOST))] if many else [name.strip()]
            unit.registers.update(dict.fromkeys(made, CLASSES.get(kind.lstrip("."), "r")))
        return ""
    form: Any = FORMS.get(opcode[0])
    operands = [o.strip() for o in re.split(r",(?![^{]*\})", words[1])] if len(words) > 1 else []
    if form is None:
        raise UnknownInstructionError(words[0])
    try:
        return str(form(unit, opcode, operands))
    except (IndexError, KeyError, ValueError):
        raise UnknownInstructionError(piece) from None


def _plain(name: str) -> str:
    return "__register_" + re.sub(r"\W", "_", name)


def _c_type(kind: str) -> str:
    return {"f": "float", "d": "double", "p": "bool", "l": "unsigned long", "h": "unsigned short"}.get(
        kind, "unsigned int"
    )


def _parts(inside: list[Token]) -> list[list[Token]]:
    """What the colons part: the text, outputs, inputs, what else changes."""
    tokens = []
    for token in inside:  # `::` is two of them
        if token.text == "::" and token.kind == "punct":
            tokens += [token._replace(text=":"), token._replace(text=":")]
        else:
            tokens.append(token)
    return _split(tokens, ":")


def _split(tokens: list[Token], mark: str) -> list[list[Token]]:
    out: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        if token.kind == "punct":
            depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(token.text, 0)
        if depth == 0 and token.text == mark and token.kind == "punct":
            out.append([])
        else:
            out[-1].append(token)
    return out if len(out) > 1 or out[0] or mark == ":" else []


def _operand(reader: Reader, piece: list[Token]) -> tuple[str, list[Token]]:
    if len(piece) < 4 or piece[0].kind != "string":
        raise reader.error("an operand is expected here", piece[0] if piece else None)
    kind = str(ast.literal_eval(piece[0].text)).strip("=+&")
    return {"n": "r", "q": "l", "c": "h"}.get(kind, kind), piece[2:-1]
