"""The syntax tree. Types are kept as written (`TypeNode`) until a template's arguments are known.

Nodes are told apart by identity: without == and repr of their own they are quicker to import.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tilewise.emulator.frontend.ctype import Scalar
from tilewise.emulator.frontend.ctype import Type as CType
from tilewise.emulator.frontend.lexer import Token
from tilewise.errors import KernelError


@dataclass(eq=False, repr=False)
class Span:
    line: int
    column: int
    length: int = 1


@dataclass(eq=False, repr=False, kw_only=True)
class Node:
    span: Span


# -- types


@dataclass(eq=False, repr=False)
class TypeNode(Node):
    pass


@dataclass(eq=False, repr=False)
class FixedType(TypeNode):
    type: CType


@dataclass(eq=False, repr=False)
class NamedType(TypeNode):
    name: str
    arguments: list[Any] = field(default_factory=list)


@dataclass(eq=False, repr=False)
class AutoType(TypeNode):
    pass


@dataclass(eq=False, repr=False)
class PointerType(TypeNode):
    to: TypeNode
    const: bool = False  # what it points to is const


@dataclass(eq=False, repr=False)
class ReferenceType(TypeNode):
    to: TypeNode
    const: bool = False


@dataclass(eq=False, repr=False)
class ArrayType(TypeNode):
    of: TypeNode
    length: Expr | None


# -- expressions


@dataclass(eq=False, repr=False)
class Expr(Node):
    pass


@dataclass(eq=False, repr=False)
class Number(Expr):
    type: Scalar
    value: Any
    origin: str = ""  # the macro that stood here


@dataclass(eq=False, repr=False)
class Text(Expr):
    value: str


@dataclass(eq=False, repr=False)
class Name(Expr):
    name: str
    arguments: list[Any] | None = None  # template arguments


@dataclass(eq=False, repr=False)
class Unary(Expr):
    op: str
    operand: Expr


@dataclass(eq=False, repr=False)
class Step(Expr):
    """++ and --."""

    op: str
    target: Expr
    prefix: bool


@dataclass(eq=False, repr=False)
class Binary(Expr):
    op: str
    left: Expr
    right: Expr


@dataclass(eq=False, repr=False)
class Assign(Expr):
    op: str  # "" for plain =, "+" for +=, …
    target: Expr
    value: Expr


@dataclass(eq=False, repr=False)
class Ternary(Expr):
    condition: Expr
    yes: Expr
    no: Expr


@dataclass(eq=False, repr=False)
class Call(Expr):
    name: str
    arguments: list[Expr]
    template: list[Any] | None = None


@dataclass(eq=False, repr=False)
class Index(Expr):
    base: Expr
    index: Expr


@dataclass(eq=False, repr=False)
class Member(Expr):
    base: Expr
    name: str
    arrow: bool


@dataclass(eq=False, repr=False)
class Cast(Expr):
    type: TypeNode
    operand: Expr
    reinterpret: bool = False


@dataclass(eq=False, repr=False)
class Construct(Expr):
    """`float4{…}`, `dim3(…)`, `T(x)`."""

    type: TypeNode
    arguments: list[Expr]


@dataclass(eq=False, repr=False)
class Braces(Expr):
    items: list[Expr]


@dataclass(eq=False, repr=False)
class SizeOf(Expr):
    type: TypeNode | None
    operand: Expr | None


@dataclass(eq=False, repr=False)
class Launch(Expr):
    kernel: Name
    configuration: list[Expr]
    arguments: list[Expr]


# -- statements


@dataclass(eq=False, repr=False)
class Stmt(Node):
    pass


@dataclass(eq=False, repr=False)
class Declarator(Node):
    name: str
    type: TypeNode
    init: Expr | None = None
    arguments: list[Expr] | None = None  # `dim3 grid(a, b)`


@dataclass(eq=False, repr=False)
class Declaration(Stmt):
    items: list[Declarator]
    words: frozenset[str] = frozenset()  # __shared__, extern, static, const, constexpr, __constant__ …


@dataclass(eq=False, repr=False)
class ExprStmt(Stmt):
    value: Expr


@dataclass(eq=False, repr=False)
class Block(Stmt):
    body: list[Stmt]


@dataclass(eq=False, repr=False)
class If(Stmt):
    condition: Expr
    yes: Stmt
    no: Stmt | None


@dataclass(eq=False, repr=False)
class For(Stmt):
    init: Stmt | None
    condition: Expr | None
    step: Expr | None
    body: Stmt


@dataclass(eq=False, repr=False)
class While(Stmt):
    condition: Expr
    body: Stmt
    after: bool = False  # do … while


@dataclass(eq=False, repr=False)
class Case(Stmt):
    value: Expr | None  # None: default


@dataclass(eq=False, repr=False)
class Switch(Stmt):
    value: Expr
    body: list[Stmt]  # Case labels stand among the statements


@dataclass(eq=False, repr=False)
class Return(Stmt):
    value: Expr | None


@dataclass(eq=False, repr=False)
class Jump(Stmt):
    word: str  # break or continue


@dataclass(eq=False, repr=False)
class Opaque(Stmt):
    """Host code that is recognised as such and left aside."""

    reason: str
    names: frozenset[str] = frozenset()  # names that may have changed in it
    mentioned: frozenset[str] = frozenset()  # all names in it


# -- the file


@dataclass(eq=False, repr=False)
class Parameter(Node):
    name: str
    type: TypeNode
    default: Expr | None = None


@dataclass(eq=False, repr=False)
class TemplateParameter:
    name: str
    is_type: bool
    default: Any = None


@dataclass(eq=False, repr=False)
class Function(Node):
    name: str
    result: TypeNode
    parameters: list[Parameter]
    words: frozenset[str]  # __global__, __device__, __host__, inline …
    body: Block | None
    template: list[TemplateParameter] = field(default_factory=list)
    tokens: list[Token] = field(default_factory=list)  # of the body, for host functions
    refusal: Exception | None = None  # why a host function could not be read whole

    @property
    def on_device(self) -> bool:
        return "__global__" in self.words or "__device__" in self.words


@dataclass(eq=False, repr=False)
class StructDefinition(Node):
    name: str
    members: list[Declarator]
    alignment: int = 1
    template: list[TemplateParameter] = field(default_factory=list)


@dataclass(eq=False, repr=False)
class File:
    functions: dict[str, list[Function]] = field(default_factory=dict)
    structs: dict[str, StructDefinition] = field(default_factory=dict)
    typedefs: dict[str, TypeNode] = field(default_factory=dict)
    constants: dict[str, Expr] = field(default_factory=dict)  # enum members
    variables: dict[str, tuple[Declarator, frozenset[str]]] = field(default_factory=dict)
    skipped: dict[str, Exception] = field(default_factory=dict)  # top-level things not understood, by name
    refused: dict[str, KernelError] = field(default_factory=dict)  # kernels that could not be read, and why

    @property
    def kernels(self) -> list[Function]:
        return [f for fs in self.functions.values() for f in fs if "__global__" in f.words and f.body]
