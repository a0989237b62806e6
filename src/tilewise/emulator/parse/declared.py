"""Declarations of the files read so far, by qualified name, and the names that the parser knows from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tilewise.emulator.parse import tree
from tilewise.errors import KernelError


@dataclass
class Names:
    """Qualified names declared at file and namespace level."""

    types: set[str] = field(default_factory=set)
    class_templates: set[str] = field(default_factory=set)
    function_templates: set[str] = field(default_factory=set)
    member_templates: set[str] = field(default_factory=set)  # methods of any class, without its name
    namespaces: set[str] = field(default_factory=set)
    using: list[str] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)  # using std::cout; namespace c = std::chrono
    prototypes: set[str] = field(default_factory=set)  # functions that are declared in another function's body

    def copy(self) -> Names:
        return Names(
            set(self.types), set(self.class_templates), set(self.function_templates), set(self.member_templates),
            set(self.namespaces), list(self.using), dict(self.aliases), set(self.prototypes),
        )  # fmt: skip

    def candidates(self, name: str, scope: str) -> Iterator[str]:
        """The qualified names that `name` may refer to in `scope`, innermost first."""
        head, _, rest = name.partition("::")
        if name in self.aliases:
            yield self.aliases[name]
        elif head in self.aliases:
            yield self.aliases[head] + ("::" + rest if rest else "")
        while scope:
            yield f"{scope}::{name}"
            for used in self.using:
                if used.startswith(scope + "::"):
                    yield f"{used}::{name}"
            scope = scope.rpartition("::")[0]
        yield name
        for used in self.using:
            yield f"{used}::{name}"
        if head == "std":  # std::sqrt, std::size_t: C names
            yield rest
        if name.startswith("cuda::std::"):  # libcu++'s names are those of the standard library
            yield from self.candidates(name.removeprefix("cuda::"), scope)

    def find(self, name: str, scope: str, among: set[str]) -> str | None:
        return next((c for c in self.candidates(name, scope) if c in among), None)


@dataclass
class Entities:
    """Functions, classes, variables, aliases and enumerators by qualified name, and what could not be parsed."""

    functions: dict[str, list[tree.Function]] = field(default_factory=dict)
    classes: dict[str, list[tree.Class]] = field(default_factory=dict)
    variables: dict[str, tree.Variable] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)  # of the variables
    aliases: dict[str, tree.Alias] = field(default_factory=dict)
    enumerators: dict[str, tuple[Any, Any]] = field(default_factory=dict)  # name -> (enum type, value node)
    refusals: list[KernelError] = field(default_factory=list)  # of entities that could not be parsed
    refused_functions: dict[str, KernelError] = field(default_factory=dict)  # those of functions, by name
    refused: dict[str, KernelError] = field(default_factory=dict)  # those of kernels and of functions that launch one

    def copy(self) -> Entities:
        """New tables of the same entities, to which a program's declarations are added."""
        functions = {name: list(found) for name, found in self.functions.items()}
        classes = {name: list(found) for name, found in self.classes.items()}
        return Entities(
            functions, classes, dict(self.variables), list(self.order), dict(self.aliases), dict(self.enumerators),
            list(self.refusals), dict(self.refused_functions), dict(self.refused),
        )  # fmt: skip

    def add_function(self, function: tree.Function) -> None:
        self.functions.setdefault(function.name, []).append(function)

    @property
    def kernels(self) -> list[tree.Function]:
        """The program's own kernels that have a body."""
        own = [f for functions in self.functions.values() for f in functions if not f.library and f.tokens]
        return [f for f in own if "__global__" in f.specifiers]


@dataclass
class Declared:
    """Declarations of the files read so far, and the names that the parser knows from them."""

    entities: Entities = field(default_factory=Entities)
    names: Names = field(default_factory=Names)
    types: set[str] = field(default_factory=set)
    templates: set[str] = field(default_factory=set)

    def copy(self) -> Declared:
        return Declared(self.entities.copy(), self.names.copy(), set(self.types), set(self.templates))
