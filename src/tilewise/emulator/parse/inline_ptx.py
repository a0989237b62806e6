"""asm("..." : outputs : inputs): common PTX instructions, each translated to an equivalent C statement.

The C text is tokenized and its operands are replaced by the program's tokens, so that errors in an operand have the
program's position. Registers that the text declares become variables of a block."""

from __future__ import annotations

import ast
import math
import re
import struct
from dataclasses import dataclass, field

from tilewise.emulator.parse.ptx_instructions import FORMS, SPECIAL
from tilewise.emulator.parse.ptx_operands import TYPES, UnknownInstructionError
from tilewise.emulator.parse.reading import Reader
from tilewise.emulator.source.lexer import Token, split, tokenize
from tilewise.emulator.source.source import Source

CLASSES = {"f32": "f", "f64": "d", "pred": "p", "b64": "l", "u64": "l", "s64": "l", "b16": "h", "u16": "h", "s16": "h"}
FLOAT_LITERAL = re.compile(r"0(?:[fF]([0-9a-fA-F]{8})|[dD]([0-9a-fA-F]{16}))")
NUMBER = re.compile(r"-?(0[xX][0-9a-fA-F]+|[0-9]+(\.[0-9]*)?([eE]-?[0-9]+)?)U?")
CONSTRAINTS = {"r": "r", "l": "l", "h": "h", "f": "f", "d": "d", "n": "r", "q": "l", "c": "h"}
REAL = {"f": "f32", "r": "f32", "d": "f64", "l": "f64"}  # the floating type of a register's size
TO_REAL = {"f32": "__uint_as_float((unsigned int)({}))", "f64": "__longlong_as_double((long)({}))"}
TO_BITS = {"f32": "__float_as_uint({})", "f64": "__double_as_longlong({})"}
MAX_INSTRUCTIONS = 64  # of one asm; and registers of one .reg a<n>
MAX_CHARACTERS = 4096


@dataclass
class Assembly:
    """The operands of one asm, with their constraints, and the registers it declares."""

    classes: list[str]
    registers: dict[str, str] = field(default_factory=dict)  # name -> register class

    def kind(self, operand: str) -> str:
        """Register class r, l, h, f, d or p, as in constraints; '' for what is no register."""
        if re.fullmatch(r"%[0-9]+", operand) and int(operand[1:]) < len(self.classes):
            return self.classes[int(operand[1:])]
        return self.registers.get(operand, "")

    def name(self, operand: str) -> str:
        """A C expression for an operand."""
        special = SPECIAL.get(operand.lstrip("%")) if operand.startswith("%") else None
        if special is not None:
            return special
        if self.kind(operand):
            return (
                f"__operand{operand[1:]}" if operand.startswith("%") and operand[1:].isdigit() else _variable(operand)
            )
        literal = FLOAT_LITERAL.fullmatch(operand)
        if literal:
            code, digits = (">f", literal[1]) if literal[1] else (">d", literal[2])
            real = struct.unpack(code, bytes.fromhex(digits))[0]
            return (
                f"({real!r})"
                if math.isfinite(real)
                else f"__{'int_as_float' if literal[1] else 'longlong_as_double'}(0x{digits})"
            )
        if NUMBER.fullmatch(operand):
            return f"({operand})"
        raise UnknownInstructionError(operand)

    def read(self, operand: str, type_: str) -> str:
        """A C expression for an operand read as `type_`; a register of another class is reinterpreted bit by bit."""
        return f"(({TYPES[type_]})({_bits(self.name(operand), self.kind(operand), type_, False)}))"

    def write(self, operand: str, type_: str, value: str) -> str:
        if operand == "_":
            return f"(void)({value});"
        kind = self.kind(operand)
        if not kind:
            raise UnknownInstructionError(operand)
        return f"{self.name(operand)} = ({_bits(value, kind, type_, True)});"


def _bits(text: str, kind: str, type_: str, write: bool) -> str:
    """A register of this class read as `type_`, or a value of `type_` as that register holds it."""
    real, floating = REAL.get(kind), kind in ("f", "d")
    if real is None or floating == (type_ == real):
        return text
    return (TO_REAL if floating == write else TO_BITS)[real].format(text)


def assembly(reader: Reader) -> list[Token]:
    """Parse an asm; the tokens of an equivalent block."""
    start = reader.advance()
    while reader.token.text in ("volatile", "__volatile__", "inline", "goto"):
        reader.advance()
    if not reader.at("("):
        reader.expect("(")
    inside = reader.skip_balanced()[1:-1]
    if reader.at(";"):
        reader.advance()
    parts = _parts(inside)
    code = "".join(_text(reader, t) for t in parts[0])
    operands = [_operand(reader, piece) for part in parts[1:3] if part for piece in split(part, ",")]
    for kind, tokens in operands:  # "0"(x): the register of the first operand, which must be x too
        if kind.isdigit() and (int(kind) >= len(operands) or _texts(tokens) != _texts(operands[int(kind)][1])):
            raise reader.error("two operands in one register are not supported in inline assembly", tokens[0])
    try:
        kinds = [operands[int(kind)][0] if kind.isdigit() else kind for kind, _ in operands]
        text = statements(code, Assembly(kinds), extended=len(parts) > 1)
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
    """The text of a C block."""
    if len(code) > MAX_CHARACTERS:
        raise UnknownInstructionError("so long a text")
    code = re.sub(r"//[^\n]*|/\*.*?\*/", " ", code, flags=re.S)
    if extended:
        code = code.replace("%%", "%")
    out: list[str] = []
    pieces = [p.strip() for p in code.split(";")]
    if len(pieces) > MAX_INSTRUCTIONS:
        raise UnknownInstructionError("so long a text")
    for piece in pieces:
        while piece and piece[0] in "{}":
            piece = piece[1:].strip()
        if piece:
            out.append(_statement(piece.rstrip("} \t\n") if piece.count("}") > piece.count("{") else piece, unit))
    declared = [f"{_c_type(kind)} {_variable(name)};" for name, kind in unit.registers.items()]
    return "{" + " ".join([*declared, *out]) + "}"


def _statement(piece: str, unit: Assembly) -> str:
    guard = re.match(r"@(!?)(%?\w+)\s+(?!@)(.*)", piece, re.S | re.A)
    if guard:
        return f"if ({guard[1]}{unit.name(guard[2])}) {{ {_statement(guard[3], unit)} }}"
    opcode, rest = (*piece.split(None, 1), "")[:2]
    try:
        if opcode == ".reg":
            _declare(rest, unit)
            return ""
        operands = [o.strip() for o in re.split(r",(?![^{]*\})", rest)] if rest.strip() else []
        return str(FORMS[opcode.split(".")[0]](unit, opcode.split("."), operands))
    except (IndexError, KeyError, ValueError):
        raise UnknownInstructionError(piece) from None


def _declare(rest: str, unit: Assembly) -> None:
    """.reg .b32 a, b<4>"""
    kind, names = rest.split(None, 1)
    for name in names.split(","):
        many = re.fullmatch(r"\s*(%?[A-Za-z_$]\w*)<([0-9]+)>\s*", name, re.A)
        made = [f"{many[1]}{i}" for i in range(min(int(many[2]), MAX_INSTRUCTIONS))] if many else [name.strip()]
        if not all(re.fullmatch(r"%?[A-Za-z_$][\w$]*", m, re.A) for m in made):
            raise ValueError
        unit.registers.update(dict.fromkeys(made, CLASSES.get(kind.lstrip("."), "r")))


def _variable(name: str) -> str:
    return "__register_" + re.sub(r"[^0-9A-Za-z_]", "_", name)


def _c_type(kind: str) -> str:
    return {"f": "float", "d": "double", "p": "bool", "l": "unsigned long", "h": "unsigned short"}.get(
        kind, "unsigned int"
    )


def _parts(inside: list[Token]) -> list[list[Token]]:
    """The text, outputs, inputs and clobbers."""
    tokens = []
    for token in inside:  # `::` is two colons
        if token.text == "::" and token.kind == "punct":
            tokens += [token._replace(text=":"), token._replace(text=":")]
        else:
            tokens.append(token)
    return split(tokens, ":")


def _text(reader: Reader, token: Token) -> str:
    try:
        if token.kind == "string":
            return str(ast.literal_eval(token.text))
    except (ValueError, SyntaxError):
        pass
    raise reader.error("the text of inline assembly is expected here", token)


def _texts(tokens: list[Token]) -> list[str]:
    return [t.text for t in tokens]


def _operand(reader: Reader, piece: list[Token]) -> tuple[str, list[Token]]:
    """The register class, or the number of the operand whose register it shares; and the tokens in the brackets."""
    if len(piece) < 4 or piece[0].kind != "string":
        raise reader.error("an operand is expected here", piece[0] if piece else None)
    kind = _text(reader, piece[0]).strip("=+&")
    if kind not in CONSTRAINTS and not re.fullmatch(r"[0-9]{1,2}", kind):
        raise reader.error(f"the constraint {kind} is not supported in inline assembly", piece[0])
    return CONSTRAINTS.get(kind, kind), piece[2:-1]
