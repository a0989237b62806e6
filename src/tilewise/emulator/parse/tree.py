"""Syntax tree of a program and its kernels. Types stay as written; `sema` resolves them where they are used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any

from tilewise.emulator.parse.type_nodes import Node as Node
from tilewise.emulator.parse.type_nodes import TypeArray as TypeArray
from tilewise.emulator.parse.type_nodes import TypeAuto as TypeAuto
from tilewise.emulator.parse.type_nodes import TypeConst as TypeConst
from tilewise.emulator.parse.type_nodes import TypeFixed as TypeFixed
from tilewise.emulator.parse.type_nodes import TypeFunction as TypeFunction
from tilewise.emulator.parse.type_nodes import TypeName as TypeName
from tilewise.emulator.parse.type_nodes import TypeOf as TypeOf
from tilewise.emulator.parse.type_nodes import TypePointer as TypePointer
from tilewise.emulator.parse.type_nodes import TypeReference as TypeReference
from tilewise.emulator.parse.type_nodes import innermost_replaced as innermost_replaced
from tilewise.emulator.parse.type_nodes import is_auto as is_auto
from tilewise.emulator.parse.type_nodes import is_changeable as is_changeable

VALUE = "<value>"  # a variable template is a class template with this one constant


# -- expressions


class Number(Node):
    value: int | float
    type: Any
    origin: str = ""  # the macro that expanded to it


class Text(Node):
    value: bytes


class Name(Node):
    name: str
    arguments: list[Node] | None = None
    owner: Node | None = None  # a type: `Thing<int>::make`


class This(Node):
    pass


class Unary(Node):
    op: str
    operand: Node


class Step(Node):
    op: str
    operand: Node
    prefix: bool


class Binary(Node):
    op: str
    left: Node
    right: Node


class Assign(Node):
    op: str
    target: Node
    value: Node


class Ternary(Node):
    condition: Node
    yes: Node
    no: Node


class Call(Node):
    function: Node
    arguments: list[Node]


class Index(Node):
    base: Node
    index: Node


class Member(Node):
    base: Node
    name: str
    arrow: bool
    arguments: list[Node] | None = None
    owner: str = ""  # of `x.Class::name`: the class, or a base of it


class Cast(Node):
    type: Any
    operand: Node
    how: str = "c"


class Construct(Node):
    type: Any
    arguments: list[Node]
    braces: bool = False

    @property
    def items(self) -> list[Node]:
        """The values in the parentheses or braces."""
        only = self.arguments[0] if self.braces else None
        return only.items if isinstance(only, Braces) else self.arguments


class Braces(Node):
    items: list[Node]
    names: list[str | None] = field(default_factory=list)


class New(Node):
    type: Any
    length: Node | None
    arguments: list[Node] | None
    place: Node | None = None


class Delete(Node):
    operand: Node
    array: bool


class SizeOf(Node):
    type: Any
    operand: Node | None
    alignment: bool = False  # alignof


class Lambda(Node):
    default: str  # "", "=" or "&"
    captures: list[tuple[str, bool, Any]]  # name, by reference, initialiser
    parameters: list[Parameter]
    result: Node | None
    body: Node
    variadic: bool = False  # [](...) { … }


class Launch(Node):
    kernel: Node | None
    configuration: list[Node]
    arguments: list[Node]
    written: list[str] = field(default_factory=list)  # the text of each argument


class Throw(Node):
    value: Node | None


# -- statements


class Variable(Node):
    name: str
    type: Any
    init: Node | None = None
    arguments: list[Node] | None = None
    specifiers: frozenset[str] = frozenset()


class Declaration(Node):
    items: list[Variable]


class Bindings(Node):
    names: list[str]  # auto [a, b] = e
    reference: bool
    value: Node | None


class Expression(Node):
    value: Node


class Block(Node):
    body: list[Node]


class If(Node):
    init: Node | None
    condition: Node
    yes: Node
    no: Node | None
    constant: bool = False


class For(Node):
    init: Node | None
    condition: Node | None
    step: Node | None
    body: Node


class ForEach(Node):
    variable: Node
    range: Node
    body: Node


class While(Node):
    condition: Node
    body: Node
    after: bool = False


class Switch(Node):
    value: Node
    body: Node


class Case(Node):
    value: Node | None


class Label(Node):
    name: str


class Goto(Node):
    name: str


class Jump(Node):
    keyword: str  # break or continue


class Return(Node):
    value: Node | None


class Handler(Node):
    """catch (T name) { … }; no parameter for catch (...)."""

    parameter: Parameter | None
    body: Node


class Try(Node):
    body: Node
    handlers: list[Handler] = field(default_factory=list)


class Nothing(Node):
    pass


class Unread(Node):
    """A statement that could not be parsed and is skipped: names it may assign to, and all names in it."""

    changed: frozenset[str]
    mentioned: frozenset[str]


# -- entities


class Parameter(Node):
    name: str
    type: Any
    default: Any = None


class TemplateParameter(Node):
    name: str
    is_type: bool
    default: Any = None
    type: Any = None
    pack: bool = False
    constraint: str = ""  # the concept that a type must meet
    templated: bool = False  # it stands for a class template


def specialises(template: list[TemplateParameter]) -> bool:
    """Whether it is the `template <>` of an explicit specialisation."""
    return [t.name for t in template] == ["<none>"]


class Function(Node):
    name: str  # qualified by its namespaces
    result: Any
    parameters: list[Parameter]
    specifiers: frozenset[str]  # static, __global__, …, and "const method" or "pure" of a method
    template: list[TemplateParameter] = field(default_factory=list)
    variadic: bool = False
    tokens: list[Any] | bytes | None = None  # of the body, with { and }; packed in headers
    initialisers: list[tuple[Any, Any]] = field(default_factory=list)
    owner: Any = None  # the class it is a member of
    scope: str = ""  # the namespace
    library: bool = False
    special: list[Any] | None = None  # arguments that an explicit specialisation names
    of_pack: bool = False  # a variadic template's version for some number of arguments
    defaulted: bool = False
    deleted: bool = False
    body: Any = None  # of a lambda; SymbolTable.bodies has the others

    @property
    def short(self) -> str:
        """Its name without the namespaces."""
        return self.name.rpartition("::")[2]

    @property
    def on_device(self) -> bool:
        return "__global__" in self.specifiers or self.specifiers & {"__device__", "__host__"} == {"__device__"}


class Class(Node):
    name: str
    keyword: str  # struct, class or union
    template: list[TemplateParameter] = field(default_factory=list)
    bases: list[Any] = field(default_factory=list)
    fields: list[Variable] = field(default_factory=list)
    methods: list[Function] = field(default_factory=list)
    types: dict[str, Any] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)
    scope: str = ""
    complete: bool = False
    alignment: Any = 1  # or an expression
    library: bool = False
    special: list[Any] | None = None  # arguments of an explicit specialisation


class Alias(Node):
    name: str
    type: Any
    template: list[TemplateParameter] = field(default_factory=list)
    scope: str = ""
    local: bool = False  # of a function, whose constants it may name


def walk(node: Any) -> Iterator[Any]:
    """Every node below, this one included."""
    stack = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, Node):
            yield item
            for name in item.__slots__ if hasattr(item, "__slots__") else ():
                stack.append(getattr(item, name))
        elif isinstance(item, (list, tuple)):
            stack.extend(item)
