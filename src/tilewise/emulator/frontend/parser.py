"""A whole file: kernels and device functions are read strictly, host code is recognised and left aside."""

from __future__ import annotations

from tilewise.emulator.frontend import ctype
from tilewise.emulator.frontend.lexer import Token
from tilewise.emulator.frontend.parse_struct import StructParser
from tilewise.emulator.frontend.parse_type import QUALIFIERS, STORAGE
from tilewise.emulator.frontend.source import Source
from tilewise.emulator.frontend.syntax import (
    ArrayType,
    Block,
    Declaration,
    File,
    FixedType,
    Function,
    Parameter,
    PointerType,
    Span,
    TemplateParameter,
    TypeNode,
)  # fmt: skip
from tilewise.emulator.limits import DEFAULT, Limits
from tilewise.errors import KernelError

MISSPELT = {
    f"{'_' * left}{word}{'_' * right}": f"__{word}__"
    for word in ("global", "device")
    for left in range(4)
    for right in range(4)
    if (left or right) and (left, right) != (2, 2)
}
UNSUPPORTED = {
    "wmma": "wmma is not supported: it runs on the card only",
    "nvcuda": "wmma is not supported: it runs on the card only",
    "load_matrix_sync": "wmma is not supported: it runs on the card only",
    "mma_sync": "wmma is not supported: it runs on the card only",
    "curandState": "cuRAND is not supported",
    "curandState_t": "cuRAND is not supported",
    "asm": "inline assembly is not supported",
    "__asm__": "inline assembly is not supported",
    "tex1D": "textures are not supported",
    "tex2D": "textures are not supported",
    "tiled_partition": "cooperative groups other than the block are not supported",
    "grid_group": "cooperative groups other than the block are not supported",
    "thread_block_tile": "cooperative groups other than the block are not supported",
    "this_cluster": "clusters are not supported",
    "cute": "CuTe is not supported",
    "cutlass": "CUTLASS is not supported",
}
OPEN, CLOSE = ("(", "[", "{"), (")", "]", "}")


class Parser(StructParser):
    def __init__(self, source: Source, tokens: list[Token], limits: Limits = DEFAULT) -> None:
        super().__init__(source, tokens, limits)
        self._find_templates()

    def parse(self) -> File:
        self._declarations(top=True)
        return self.file

    def _find_templates(self) -> None:
        """Names of templates, so that `name<16>(…)` and `i < n` are told apart."""
        tokens = [*self.tokens, self.tokens[-1]]
        for i, token in enumerate(self.tokens):
            if token.text != "template" or tokens[i + 1].text != "<":
                continue
            depth, j = 0, i + 1
            while tokens[j].kind != "end":
                depth += {"<": 1, ">": -1, ">>": -2}.get(tokens[j].text, 0)
                j += 1
                if depth <= 0:
                    break
            while tokens[j].kind != "end" and tokens[j].text not in ("(", ";", "{"):
                if tokens[j].text in ("struct", "class") and tokens[j + 1].kind == "name":
                    self.type_templates.add(tokens[j + 1].text)
                if tokens[j].text == "__launch_bounds__":
                    depth = 0
                    while tokens[j].kind != "end":
                        depth += {"(": 1, ")": -1}.get(tokens[j].text, 0)
                        if depth == 0 and tokens[j].text == ")":
                            break
                        j += 1
                elif tokens[j].kind == "name" and tokens[j + 1].text == "(":
                    self.templates.add(tokens[j].text)
                j += 1

    def _declarations(self, top: bool) -> None:
        while self.token.kind != "end":
            if self.is_punct("}") and not top:
                return
            self.top_level([])

    def top_level(self, template: list[TemplateParameter]) -> None:
        token = self.token
        text = token.text
        if text == ";":
            self.advance()
        elif text == "template" and self.peek(1).text != "<":  # an explicit instantiation
            self._skip_to(";")
        elif text == "template" and not template:
            self._template()
        elif text in MISSPELT:
            raise self.refuse(f"{text} is no word of CUDA: {MISSPELT[text]} has two underscores on each side")
        elif text == "extern" and self.peek(1).kind == "string":
            self.advance()
            self.advance()
            if self.is_punct("{"):
                self._braced()
            else:
                self.top_level(template)
        elif text in ("namespace", "inline") and self._is_namespace():
            while not self.is_punct("{") and self.token.kind != "end":
                self.advance()
            self._braced()
        elif text == "using" and self.peek(1).text == "namespace":
            self._skip_to(";")
        else:
            self._entity(template)

    def _is_namespace(self) -> bool:
        i = 1 if self.is_word("inline") else 0
        if self.peek(i).text != "namespace":
            return False
        return self.peek(i + 1).text == "{" or self.peek(i + 2).text in ("{", "::")

    def _braced(self) -> None:
        start = self.expect("{")
        with self.deeper():
            self._declarations(top=False)
        if not self.is_punct("}"):
            raise self.refuse("this { is never closed", start)
        self.advance()

    def _template(self) -> None:
        self.advance()
        self.expect("<")
        parameters: list[TemplateParameter] = []
        self.types.append(set())
        self.values.append(set())
        try:
            while not self.is_punct(">"):
                is_type = self.token.text in ("typename", "class")
                if is_type:
                    self.advance()
                else:
                    self.specifiers()
                if self.is_punct("..."):
                    raise self.refuse("variadic templates are not supported")
                name = f"<{len(parameters)}>"
                if self.token.kind == "name" or self.token.origin:  # -D may have put a value in its place
                    token = self.advance()
                    name = token.origin or token.text
                default = None
                if self.is_punct("="):
                    self.advance()
                    default = self.in_angle(self.type_name if is_type else self.template_value)
                (self.declare_type if is_type else self.declare_value)(name)
                parameters.append(TemplateParameter(name, is_type, default))
                if not self.is_punct(","):
                    break
                self.advance()
            self.close_angle()
            self.top_level(parameters or [TemplateParameter("<none>", True)])
        finally:
            types = self.types.pop()
            self.values.pop()
            self.types[-1] |= types & set()

    # -- one entity: strictly where it is for the device, leniently otherwise

    def _chunk(self) -> tuple[int, bool, set[str]]:
        """Look ahead to the { or ; that ends the head: its position, whether it opens a body, words of the head."""
        i, depth = self.position, 0
        words: set[str] = set()
        assigned = False
        while self.tokens[i].kind != "end":
            token = self.tokens[i]
            if token.kind == "punct":
                if token.text == "{" and depth == 0 and not assigned:
                    return i, True, words
                if token.text == ";" and depth == 0:
                    return i, False, words
                if token.text == "=" and depth == 0:
                    assigned = True
                if token.text in OPEN:
                    depth += 1
                elif token.text in CLOSE:
                    depth -= 1
                    if depth < 0:
                        return i, False, words
            elif token.kind == "name" and not assigned:
                words.add(token.text)
            i += 1
        return i, False, words

    def _entity(self, template: list[TemplateParameter]) -> None:
        start = self.position
        end, body, words = self._chunk()
        strict = bool(words & {"__global__", "__device__", "__constant__", "__shared__"})
        kept = self.depth
        try:
            self._define(template, strict)
        except KernelError as error:
            if strict and not self._set_aside(start, end, body, words, error):
                raise
            if strict:
                return
            self.position, self.depth, self.angle, self.launching = start, kept, 0, 0
            self._left_over(start, end, body, error)

    def _set_aside(self, start: int, end: int, body: bool, words: set[str], error: KernelError) -> bool:
        """A function of the device that cannot be read does not keep the others from being read."""
        name = self._function_name(start, end)
        if not body or not name or words & {"struct", "class", "union"}:
            return False
        self.position, self.depth, self.angle, self.launching = start, 0, 0, 0
        self.lenient = False
        self.position = min(self._matching(end) + 1, len(self.tokens) - 1)
        kept = self.file.refused if "__global__" in words else self.file.skipped
        kept.setdefault(name, self._feature(start) or error)
        return True

    def _feature(self, start: int) -> KernelError | None:
        """What the function needs that is not supported, by its name."""
        for token in self.tokens[start : self.position]:
            if token.kind == "name" and token.text in UNSUPPORTED:
                return self.refuse(UNSUPPORTED[token.text], token)
        return None

    def _left_over(self, start: int, end: int, body: bool, error: KernelError) -> None:
        names = [t.text for t in self.tokens[start:end] if t.kind == "name"]
        if body:
            self.position = end
            stop = self._matching(end)
            # a host function: keep its tokens, the launch may be in it
            name = self._function_name(start, end)
            inside = self.tokens[end : stop + 1]
            at = self.tokens[start]
            if name and any(t.text == "(" for t in self.tokens[start:end]):
                span = Span(at.line, at.column, len(at.text))
                nothing = FixedType(ctype.VOID, span=span)
                function = Function(name, nothing, [], frozenset(), None, [], inside, error, span=span)
                self.lenient = True
                try:
                    function.body = self.block()
                except KernelError:
                    function.body = None
                finally:
                    self.lenient = False
                self.file.functions.setdefault(name, []).append(function)
            self.position = min(stop + 1, len(self.tokens) - 1)
            if self.is_punct(";"):
                self.advance()
        else:
            self.position = min(end + 1, len(self.tokens) - 1) if self.tokens[end].text != "}" else end
            if self.position == start:
                raise error
        for name in names:
            self.file.skipped.setdefault(name, error)

    def _function_name(self, start: int, end: int) -> str:
        for i in range(start, end):
            if self.tokens[i].text == "(" and i > start and self.tokens[i - 1].kind == "name":
                return self.tokens[i - 1].text
        return ""

    def _matching(self, i: int) -> int:
        depth = 0
        start = self.tokens[i]
        while self.tokens[i].kind != "end":
            token = self.tokens[i]
            if token.kind == "punct":
                depth += {"{": 1, "}": -1}.get(token.text, 0)
                if depth == 0:
                    return i
            i += 1
        raise self.refuse("this { is never closed", start)

    def local_definition(self) -> bool:
        text = self.token.text
        if text == "struct" and self.peek(2).text != "{" and self.peek(1).text != "{":
            return False
        if text == "enum" and self.peek(1).kind == "name" and self.peek(2).kind == "name":
            return False
        self._define([], True)
        return True

    def _define(self, template: list[TemplateParameter], strict: bool) -> None:
        text = self.token.text
        if text == "typedef":
            self._typedef()
        elif text == "using":
            self._alias()
        elif text in ("static_assert", "_Static_assert"):
            self._skip_to(";")
        elif text == "enum":
            self._enum()
        elif text in ("struct", "class", "union") and self._defines_struct():
            definition = self._struct(template)
            if self.token.kind == "name" or self.is_punct("*"):
                base: TypeNode = self._named(definition.name, definition.span)
                self._variables(base, False, set())
            else:
                self.expect(";")
        else:
            self._function_or_variable(template, strict)

    def _function_or_variable(self, template: list[TemplateParameter], strict: bool) -> None:
        start = self.token
        words: set[str] = set()
        base, const = self.specifiers(words)
        mark = self.position
        type_ = self.pointers(base, const)
        while self.token.kind == "name" and (self.token.text in STORAGE or self.token.text in QUALIFIERS):
            words.add(self.token.text)
            if self.advance().text == "__launch_bounds__":
                self.skip_brackets()
        if self.token.kind == "name" and self.peek(1).text == "(":
            if self.token.text == "operator" or self.peek(2).kind in ("number", "string"):
                raise self.refuse("this is not a function that can be read")
            self._function(start, type_, words, template)
            return
        if self.token.text == "operator":
            raise self.refuse("operator overloading is not supported")
        self.position = mark
        self._variables(base, const, words)

    def _variables(self, base: TypeNode, const: bool, words: set[str]) -> None:
        start = self.token
        items = [self.declarator(base, const)]
        while self.is_punct(","):
            self.advance()
            items.append(self.declarator(base, const))
        self.expect(";")
        declaration = Declaration(items, frozenset(words), span=self.span(start))
        for item in declaration.items:
            self.file.variables[item.name] = (item, declaration.words)

    def _function(self, start: Token, result: TypeNode, words: set[str], template: list[TemplateParameter]) -> None:
        name_token = self.advance()
        device = bool(words & {"__global__", "__device__"})
        with self.scope():
            parameters = self._parameters()
            while self.token.kind == "name" and self.token.text in (QUALIFIERS | STORAGE | {"noexcept"}):
                self.advance()
            span = Span(name_token.line, name_token.column, len(name_token.text))
            body: Block | None = None
            tokens: list[Token] = []
            if self.is_punct("{"):
                stop = self._matching(self.position)
                tokens = self.tokens[self.position : stop + 1]
                self.lenient = not device
                try:
                    body = self.block()
                finally:
                    self.lenient = False
            else:
                self.expect(";")
        function = Function(name_token.text, result, parameters, frozenset(words), body, template, tokens, span=span)
        known = self.file.functions.setdefault(name_token.text, [])
        if body is not None:
            known[:] = [f for f in known if f.body is not None or f.tokens]
        if body is not None or not known:
            known.append(function)

    def _parameters(self) -> list[Parameter]:
        self.expect("(")
        parameters: list[Parameter] = []
        if self.is_word("void") and self.peek(1).text == ")":
            self.advance()
        while not self.is_punct(")"):
            start = self.token
            base, const = self.specifiers(set())
            type_ = self.pointers(base, const)
            name = f"<{len(parameters)}>"
            if self.is_punct("(") and self.peek(1).text in ("*", "&"):
                type_, name = self.pointer_to_array(type_)
            else:
                if self.token.kind == "name":
                    start = self.token
                    name = self.advance().text
                type_ = self.suffixes(type_)
            if isinstance(type_, ArrayType):  # an array parameter is a pointer to its element
                type_ = PointerType(type_.of, const, span=type_.span)
            default = None
            if self.is_punct("="):
                self.advance()
                default = self.bracketed(self.assignment)
            self.declare_value(name)
            if name and any(p.name == name for p in parameters):
                raise self.refuse(f"the parameter {name} is declared twice", start)
            parameters.append(Parameter(name, type_, default, span=self.span(start)))
            if not self.is_punct(","):
                break
            self.advance()
        self.expect(")")
        return parameters
