"""The preprocessor: object-like and function-like macros, conditionals; tokens keep the place where they are used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilewise.emulator.limits import DEFAULT, Limits
from tilewise.emulator.source.conditional import evaluate_condition
from tilewise.emulator.source.lexer import Token, tokenize
from tilewise.emulator.source.source import MAX_BYTES, Source
from tilewise.errors import LimitError

PREDEFINED = {"__CUDACC__": "1", "__CUDA_ARCH__": "900", "__NVCC__": "1", "__cplusplus": "201703L"}


@dataclass(frozen=True)
class Macro:
    name: str
    body: tuple[Token, ...]
    parameters: tuple[str, ...] | None = None  # None: object-like
    variadic: bool = False
    line: int = 0


class Preprocessor:
    def __init__(
        self, source: Source, defines: Mapping[str, str | int] | None = None, limits: Limits = DEFAULT
    ) -> None:
        self.source = source
        self.limits = limits
        self.forced = {str(k): str(v) for k, v in (defines or {}).items()}
        self.macros: dict[str, Macro] = {"_Pragma": Macro("_Pragma", (), ("text",))}  # ignored, like #pragma
        for name, value in {**PREDEFINED, **self.forced}.items():
            body = tokenize(Source(f"-D {name}", value))[:-2]
            self.macros[name] = Macro(name, tuple(t for t in body if t.kind != "newline"))
        self.count = 0
        self.made = 0  # characters of texts that # and ## made
        self.expanded: list[Token] = []  # tokens of the current file so far

    def process(self, tokens: list[Token]) -> list[Token]:
        """The tokens of one file up to its end, directives executed and macros expanded."""
        out: list[Token] = []
        self.expanded = out
        text: list[Token] = []
        stack: list[list[bool]] = []  # [this branch is active, one was active, the enclosing one is active]
        i = 0
        line_start = True
        while tokens[i].kind != "end":
            token = tokens[i]
            if token.kind == "newline":
                line_start = True
                i += 1
                continue
            if line_start and token.text == "#" and token.kind == "punct":
                j = i + 1
                while tokens[j].kind != "newline":
                    j += 1
                out.extend(self.expand(text))
                text = []
                out.extend(self._directive(tokens[i + 1 : j], token, stack))
                self.expanded = out
                i = j
                continue
            line_start = False
            if all(level[0] for level in stack):
                text.append(token)
            i += 1
        if stack:
            raise self.source.error("an #if is never closed by #endif", token.line, 1)
        out.extend(self.expand(text))
        return out

    def include(self, name: str, hash_: Token) -> list[Token]:
        """The tokens of an included file. The headers of this package include none."""
        return []

    # -- directives

    def _directive(self, tokens: list[Token], hash_: Token, stack: list[list[bool]]) -> list[Token]:
        """Execute one directive; the tokens that an #include adds."""
        if not tokens:
            return []
        name, rest = tokens[0].text, tokens[1:]
        outside = all(level[0] for level in stack)
        if name in ("if", "ifdef", "ifndef"):
            if len(stack) >= self.limits.nesting:
                raise LimitError(f"{self.source.name}:{hash_.line}: #if nested more than {len(stack)} deep")
            taken = outside and self._condition(name, rest, hash_)
            stack.append([taken, taken, outside])
            return []
        if name in ("elif", "else", "endif"):
            if not stack:
                raise self.source.error(f"#{name} without #if", hash_.line, hash_.column)
            if name == "endif":
                stack.pop()
                return []
            level = stack[-1]
            if level[1] or not level[2]:
                level[0] = False
            else:
                level[0] = level[1] = name == "else" or self._condition("if", rest, hash_)
            return []
        if not outside:
            return []
        if name == "define":
            self._define(rest, hash_)
        elif name == "undef":
            if rest and rest[0].text not in self.forced:
                self.macros.pop(rest[0].text, None)
        elif name == "error":
            message = " ".join(t.text for t in rest)
            raise self.source.error(f"#error {message}", hash_.line, hash_.column)
        elif name == "include":
            plain = rest and (rest[0].text == "<" or rest[0].kind == "string")  # else a macro that expands to the name
            return self.include("".join(t.text for t in (rest if plain else self.expand(rest))), hash_)
        elif name not in ("pragma", "line", "warning", "ident", "import"):
            raise self.source.error(f"#{name} is not understood", hash_.line, hash_.column)
        return []

    def _condition(self, name: str, rest: list[Token], hash_: Token) -> bool:
        if name in ("ifdef", "ifndef"):
            if not rest or rest[0].kind != "name":
                raise self.source.error(f"#{name} needs a name", hash_.line, hash_.column)
            return (rest[0].text in self.macros) == (name == "ifdef")
        ready: list[Token] = []
        i = 0
        while i < len(rest):
            token = rest[i]
            if token.text == "defined" and i + 1 < len(rest):
                bracket = rest[i + 1].text == "("
                target = rest[i + 2] if bracket and i + 2 < len(rest) else rest[i + 1]
                known = "1" if target.text in self.macros else "0"
                ready.append(token._replace(kind="number", text=known))
                i += 4 if bracket else 2
            else:
                ready.append(token)
                i += 1
        return evaluate_condition(self.source, self.expand(ready), hash_, self.limits.nesting)

    def _define(self, rest: list[Token], hash_: Token) -> None:
        if not rest or rest[0].kind != "name":
            raise self.source.error("#define needs a name", hash_.line, hash_.column)
        name = rest[0].text
        parameters: tuple[str, ...] | None = None
        variadic = False
        body = rest[1:]
        if body and body[0].text == "(" and not body[0].spaced:
            names: list[str] = []
            i = 1
            while i < len(body) and body[i].text != ")":
                if body[i].text == "...":
                    variadic = True
                    names.append("__VA_ARGS__")
                elif body[i].kind == "name":
                    names.append(body[i].text)
                elif body[i].text != ",":
                    raise self.source.error("a macro parameter must be a name", body[i].line, body[i].column)
                i += 1
            if i >= len(body):
                raise self.source.error("this macro's parameters are never closed", hash_.line, hash_.column)
            parameters, body = tuple(names), body[i + 1 :]
        if name not in self.forced:
            self.macros[name] = Macro(name, tuple(body), parameters, variadic, rest[0].line)

    # -- expansion

    def expand(self, tokens: list[Token]) -> list[Token]:
        out: list[Token] = []
        work = tokens[::-1]  # a stack: the next token is the last one
        while work:
            token = work.pop()
            self.count += 1
            if self.count > self.limits.tokens:
                raise LimitError(
                    f"{self.source.name}:{token.line}: more than {self.limits.tokens} tokens after macro expansion"
                )
            macro = self.macros.get(token.text) if token.kind == "name" else None
            if token.text in ("__LINE__", "__FILE__") and token.kind == "name":
                out.append(self._position(token))
                continue
            if macro is None or macro.name in token.hidden:
                out.append(token)
                continue
            hidden = token.hidden | {macro.name}
            if macro.parameters is None:
                origin = token.origin or macro.name
                body = self._paste([t.at(token) for t in macro.body])
                fresh = [t.hiding(hidden, origin) for t in body]
                work.extend(reversed(fresh))
                continue
            if not work or work[-1].text != "(":
                out.append(token)
                continue
            arguments = self._arguments(work, token, macro)
            body = self._substitute(macro, arguments, token)
            work.extend(reversed([t.hiding(hidden, t.origin) for t in body]))
        return out

    def _position(self, token: Token) -> Token:
        """The expansion of __LINE__ or __FILE__."""
        place = self.source.place(token.line, token.column)
        if token.text == "__LINE__":
            return token._replace(kind="number", text=str(place.line))
        name = place.file.rpartition("/")[2].replace("\\", "/").replace('"', "'")
        return token._replace(kind="string", text=f'"{name}"')

    def _arguments(self, work: list[Token], token: Token, macro: Macro) -> list[list[Token]]:
        work.pop()
        arguments: list[list[Token]] = [[]]
        depth = 0
        while work:
            t = work.pop()
            if t.text in ("(", "[", "{") and t.kind == "punct":
                depth += 1
            elif t.text in (")", "]", "}") and t.kind == "punct":
                if depth == 0:
                    break
                depth -= 1
            assert macro.parameters is not None
            enough = macro.variadic and len(arguments) >= len(macro.parameters)
            if t.text == "," and depth == 0 and not enough:
                arguments.append([])
            else:
                arguments[-1].append(t)
        else:
            raise self.source.error(f"the call of {macro.name} is never closed", token.line, token.column)
        assert macro.parameters is not None
        if arguments == [[]] and not macro.parameters:
            arguments = []
        if macro.variadic and len(arguments) == len(macro.parameters) - 1:
            arguments.append([])
        if len(arguments) != len(macro.parameters):
            raise self.source.error(
                f"{macro.name} takes {len(macro.parameters)} arguments, {len(arguments)} are given",
                token.line,
                token.column,
                len(macro.name),
            )
        return arguments

    def _substitute(self, macro: Macro, arguments: list[list[Token]], token: Token) -> list[Token]:
        assert macro.parameters is not None
        given = dict(zip(macro.parameters, arguments, strict=True))
        expanded: dict[str, list[Token]] = {}
        out: list[Token] = []
        body = macro.body
        for i, t in enumerate(body):
            argument = given.get(t.text) if t.kind == "name" else None
            if argument is None:
                if t.text == "#" and i + 1 < len(body) and body[i + 1].text in given:
                    continue
                out.append(t.at(token))
                continue
            if i and body[i - 1].text == "#":
                self._make(sum(len(a.text) for a in argument), token)
                text = "".join((" " if a.spaced and j else "") + a.text for j, a in enumerate(argument))
                text = text.replace("\\", "\\\\") if '"' in text else text
                out.append(t.at(token)._replace(kind="string", text='"' + text.replace('"', '\\"') + '"'))
            elif i > 1 and body[i - 1].text == "##" and body[i - 2].text == "," and t.text == "__VA_ARGS__":
                del out[-1 if argument else -2 :]  # `, ##__VA_ARGS__`: without arguments the comma is dropped
                out.extend(argument)
            elif (i and body[i - 1].text == "##") or (i + 1 < len(body) and body[i + 1].text == "##"):
                out.extend(argument or [t.at(token)._replace(kind="nothing", text="")])
            else:
                if t.text not in expanded:
                    expanded[t.text] = self.expand(argument)
                out.extend(expanded[t.text])
        return self._paste(out)

    def _make(self, length: int, token: Token) -> None:
        """Count the characters of a new text: each # and ## may double one that another made."""
        self.made += length
        if self.made > MAX_BYTES:
            raise LimitError(f"{self.source.name}:{token.line}: # and ## make more than {MAX_BYTES >> 20} MiB of text")

    def _paste(self, tokens: list[Token]) -> list[Token]:
        if not any(t.text == "##" for t in tokens):
            return tokens
        out: list[Token] = []
        i = 0
        while i < len(tokens):
            if tokens[i].text == "##" and out and i + 1 < len(tokens):
                left, right = out.pop(), tokens[i + 1]
                self._make(len(left.text) + len(right.text), left)
                out.append(right if left.kind == "nothing" else left._replace(text=left.text + right.text))
                i += 2
            else:
                out.append(tokens[i])
                i += 1
        return [t for t in out if t.kind != "nothing"]
