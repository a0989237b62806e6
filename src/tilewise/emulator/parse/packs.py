"""Variadic function templates, read once for each number of arguments from 0 to 12.

The tokens of the template are expanded before they are parsed: of `template <class... Ts> void f(Ts... x) { g(x...); }`
the version for two is `template <class Ts.0, class Ts.1> void f(Ts.0 x.0, Ts.1 x.1) { g(x.0, x.1); }`. What follows
(overloads, deduction, both executors and the proofs) sees functions with a fixed number of parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

from tilewise.emulator.parse.reading import Reader
from tilewise.emulator.source.lexer import Token

MOST = 12  # arguments of a pack
OPENS, CLOSES = ("(", "[", "{"), (")", "]", "}")
OPERATORS = (
    "+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", "&&", "||", ",", "=", "+=", "-=", "*=", "/=", "|=", "&=",
    "==", "!=", "<", ">", "<=", ">=",
)  # fmt: skip
OF_NONE = {"&&": "true", "||": "false", ",": "0"}  # folds without operands
BEFORE_PATTERN = (*OPENS, "<", ",", ";", ":", "=", "?", "return", "using")


def declares_pack(reader: Reader) -> bool:
    """Whether the head `template <…>` here has a pack and a function follows; a class template keeps its pack."""
    at, end = reader.position + 1, _after_angles(reader.tokens, reader.position + 1)
    following = next((t.text for t in reader.tokens[end:] if t.text not in ATTRIBUTES), "")
    return any(t.text == "..." for t in reader.tokens[at:end]) and following not in NO_FUNCTION


ATTRIBUTES = ("__host__", "__device__", "inline", "static")
NO_FUNCTION = ("struct", "class", "union", "using", "concept", "template", "friend")


def read_versions(reader: Reader, skip: Callable[[Reader], None], read: Callable[[], None]) -> None:
    """`read()` on the declaration here, which `skip` passes over, once for each length of its packs."""
    start, outer = reader.position, reader.tokens
    while reader.position < _after_angles(outer, start + 1):
        reader.advance()
    skip(reader)
    end = reader.position
    written, last, splits = outer[start:end], outer[end - 1], reader.splits
    try:
        for count in range(MOST + 1):
            made = expanded(written, count)
            left = _not_expanded(made, pack_names(written))
            if left is not None:
                raise reader.error(f"{left.text} is a parameter pack: ... is missing behind it", left)
            reader.tokens, reader.position, reader.of_pack = [*made, Token("end", "", last.line, last.column)], 0, True
            reader.splits = []
            read()
    finally:
        reader.tokens, reader.position, reader.of_pack, reader.splits = outer, end, False, splits


def expanded(written: list[Token], count: int) -> list[Token]:
    """The tokens of a template in which each pack has `count` elements."""
    return _Expansion(pack_names(written), count).of(written)


def pack_names(written: list[Token]) -> set[str]:
    """The packs of a template's head, `class... Ts`, and the parameters declared with them, `const Ts&... x`."""
    end = _after_angles(written, 1)
    pairs = list(pairwise(written))
    packs = {b.text for a, b in pairs[:end] if a.text == "..." and b.kind == "name"}
    for at, (a, b) in enumerate(pairs[end:], end):
        if a.text == "..." and b.kind == "name":
            types = {t.text for t in written[_pattern_start(written, at) : at]}
            packs |= {b.text} if types & packs else set()
    return packs


def _not_expanded(made: list[Token], packs: set[str]) -> Token | None:
    """A pack's name that no ... expands."""
    named = ((t, made[i - 1].text if i else "") for i, t in enumerate(made) if t.kind == "name" and t.text in packs)
    return next((t for t, before in named if before not in (".", "->", "::")), None)


class _Expansion:
    """The expansion of a list of tokens for one length of the packs."""

    def __init__(self, packs: set[str], count: int) -> None:
        self.packs = packs
        self.count = count

    def of(self, tokens: list[Token]) -> list[Token]:
        out: list[Token] = []
        at = 0
        while at < len(tokens):
            token = tokens[at]
            if token.text == "sizeof" and _text(tokens, at + 1) == "...":  # sizeof...(x)
                at = _closing(tokens, at + 2)
                out.append(token._replace(kind="number", text=f"{self.count}ull"))
            elif token.text == "(" and (fold := self._fold(tokens[at : _closing(tokens, at) + 1])) is not None:
                at = _closing(tokens, at)
                out += fold
            elif token.text == "..." and _pattern_has(out, self.packs, _text(tokens, at + 1)):
                at = self._expand(out, tokens, at)
            else:
                out.append(token)
            at += 1
        return out

    def _expand(self, out: list[Token], tokens: list[Token], at: int) -> int:
        """Replace the pattern at the end of `out` by its elements; where the last token is that belongs to it."""
        begin = _pattern_start(out, len(out))
        pattern, comma = out[begin:], tokens[at]._replace(text=",")
        del out[begin:]
        declared = tokens[at + 1 : at + 2] if at + 1 < len(tokens) and tokens[at + 1].text in self.packs else []
        for element in range(self.count):
            out += [comma] if element else []
            out += self._element([*pattern, *declared], element)
        at += len(declared)
        if not self.count and out and out[-1].text in (",", ":"):
            out.pop()
        elif not self.count and _text(tokens, at + 1) == ",":
            at += 1
        return at

    def _element(self, pattern: list[Token], element: int) -> list[Token]:
        return [
            t._replace(text=f"{t.text}.{element}") if t.kind == "name" and t.text in self.packs else t for t in pattern
        ]

    def _fold(self, tokens: list[Token]) -> list[Token] | None:
        """Of the fold `(x + ...)`, `(... + x)`, `(x + ... + first)` or `(first + ... + x)`; None of other brackets."""
        at = next((i for i in _outermost(tokens) if tokens[i].text == "..."), 0)
        if not at:
            return None
        after = tokens[at + 1]
        operator = after if at == 1 else tokens[at - 1]
        if operator.text not in OPERATORS or (at > 1 and at + 2 < len(tokens) and after.text != operator.text):
            return None
        left, right = tokens[1 : max(at - 1, 1)], tokens[at + 2 : -1]
        packed_left = any(t.text in self.packs for t in left)
        if not packed_left and not any(t.text in self.packs for t in right):
            return None
        pattern, first = (self.of(left), self.of(right)) if packed_left else (self.of(right), self.of(left))
        operands = [self._element(pattern, element) for element in range(self.count)]
        if first:
            operands = [*operands, first] if packed_left else [first, *operands]
        return self._folded(tokens[0], operator, tokens[-1], operands, packed_left)

    def _folded(
        self, opening: Token, operator: Token, closing: Token, operands: list[list[Token]], from_right: bool
    ) -> list[Token]:
        if not operands:
            none = OF_NONE.get(operator.text, f"a fold over {operator.text} of no arguments")
            return [opening, opening._replace(kind="number" if none == "0" else "name", text=none), closing]
        if from_right:
            made = operands[-1]
            for operand in reversed(operands[:-1]):
                made = [opening, *operand, operator, *made, closing]
        else:
            made = operands[0]
            for operand in operands[1:]:
                made = [opening, *made, operator, *operand, closing]
        return made if len(operands) > 1 else [opening, *made, closing]


def _text(tokens: list[Token], at: int) -> str:
    return tokens[at].text if at < len(tokens) else ""


def _outermost(tokens: list[Token]) -> Iterator[int]:
    """The positions directly inside the brackets that `tokens` begins and ends with."""
    depth = 0
    for i, token in enumerate(tokens):
        depth -= token.text in CLOSES
        if depth == 1:
            yield i
        depth += token.text in OPENS


def _closing(tokens: list[Token], at: int) -> int:
    """The position of the bracket that closes the one at `at`; that of the last token if none does."""
    depth = 0
    for i in range(at, len(tokens)):
        depth += (tokens[i].text in OPENS) - (tokens[i].text in CLOSES)
        if not depth:
            return i
    return len(tokens) - 1


def _after_angles(tokens: list[Token], at: int) -> int:
    """The position behind the > that closes the < at `at`."""
    depth = 0
    for i in range(at, len(tokens)):
        depth += {"<": 1, ">": -1, ">>": -2}.get(tokens[i].text, 0)
        if depth <= 0:
            return i + 1
    return len(tokens)


def _pattern_start(tokens: list[Token], end: int) -> int:
    """Where the pattern that ends before `end` begins: behind a comma, an opening bracket or a keyword."""
    depth = at = 0
    for at in range(end - 1, -1, -1):
        text = tokens[at].text
        if text in CLOSES:
            depth += 1
        elif depth and text in OPENS:
            depth -= 1
        elif not depth and text in (">", ">>"):
            opening = _opening_angle(tokens, at)
            if opening is None:
                continue
            return _pattern_start(tokens, opening)
        elif not depth and text in BEFORE_PATTERN:
            return at + 1
    return at


def _opening_angle(tokens: list[Token], at: int) -> int | None:
    """The < of the template arguments that end at `at`; None if the > is an operator."""
    depth = 0
    for i in range(at, -1, -1):
        text = tokens[i].text
        depth += {">": 1, ">>": 2, "<": -1}.get(text, 0)
        if depth <= 0:
            return i
        if text in (";", "(", "{", "}", "&&", "||", "return"):
            return None
    return None


def _pattern_has(out: list[Token], packs: set[str], following: str) -> bool:
    """Whether ... behind `out` expands a pack: not so in `catch (...)`, or `printf(const char*, ...)`."""
    pattern = out[_pattern_start(out, len(out)) :]
    return following in packs or any(t.text in packs for t in pattern)
