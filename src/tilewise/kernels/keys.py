"""Kernel texts by their names: who writes a text, and from what. The words are written when a compiler needs them.

A text of the closed set is 10 to 50 KB and takes longer to write than everything else that a launch is laid out by,
and it is written only to be looked up. Its name says as much in a hundred characters: what is built is found by that
(`backends/cuda/bundle.py`). Whatever a name cannot tell, semirings of one's own above all, goes by its words as ever.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import lru_cache, partial, update_wrapper
from inspect import signature
from typing import Any, Generic, ParamSpec

from tilewise.algebra.builtin import SEMIRINGS
from tilewise.algebra.dtypes import DType
from tilewise.algebra.semiring import Algebra, Semiring

Given = ParamSpec("Given")
KNOWN = 4096  # names that a writer of texts remembers
WORDS = 256  # texts that it keeps


class Named(str):
    """A text's name, which stands for the text: equal names are equal texts."""

    __slots__ = ("writer", "written")
    writer: str  # the functions that write it
    written: Callable[[], str]


def words(text: str) -> str:
    """The text itself."""
    return text.written() if text.__class__ is Named else text


class Unnamed(Exception):
    """Something among what a text is written from cannot be told by a name."""


class Written(Generic[Given]):
    """A function that writes texts: called it answers with words, `named` with the name of those it would write."""

    def __init__(self, write: Callable[Given, str]) -> None:
        update_wrapper(self, write)
        self._words = lru_cache(maxsize=WORDS)(write)
        module = write.__module__.removeprefix("tilewise.kernels.").removesuffix(".text")
        self._name = f"{module}.{write.__qualname__}"
        self._usual = {name: one.default for name, one in signature(write).parameters.items()}
        self._known: dict[Any, str] = {}

    def __call__(self, *args: Given.args, **kw: Given.kwargs) -> str:
        return self._words(*(words(x) if x.__class__ is Named else x for x in args), **kw)  # type: ignore[arg-type]

    def named(self, *args: Given.args, **kw: Given.kwargs) -> str:
        """The name of the text, or the text itself where it has none."""
        key: Any = (args, *kw.items()) if kw else args
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= KNOWN:
                self._known.clear()
            found = self._known[key] = self._named(args, kw)
        return found

    def _named(self, args: tuple[Any, ...], kw: dict[str, Any]) -> str:
        given = {**self._usual, **dict(zip(self._usual, args, strict=False)), **kw}
        try:
            made = Named(f"{self._name}({','.join([spelt(value) for value in given.values()])})")
        except Unnamed:
            return self(*args, **kw)
        made.writer = " ".join((self._name, *(x.writer for x in args if isinstance(x, Named))))
        made.written = partial(self, *args, **kw)
        return made


def spelt(value: Any) -> str:
    """A value as a name has it: the same for equal ones, another for others."""
    kind = value.__class__
    if kind is str:
        return repr(value)
    if kind is bool or kind is int:
        return str(int(value))
    if value is None or kind is Named or kind is float:
        return str(value)
    return _spelt(value)


@lru_cache(maxsize=4096)
def _spelt(value: Any) -> str:
    if isinstance(value, DType):
        return value.name
    if isinstance(value, Semiring):
        if SEMIRINGS.get(value.name) is not value:
            raise Unnamed
        return value.name
    if isinstance(value, Algebra):  # its other fields follow from these
        return f"{spelt(value.semiring)}:{value.element}:{value.partial}:{value.result}"
    if isinstance(value, tuple):  # one with names for its fields is equal to one without
        return f"({','.join(map(spelt, value))})"
    if is_dataclass(value) and not isinstance(value, type):
        return f"{type(value).__name__}({','.join([spelt(getattr(value, one.name)) for one in fields(value)])})"
    raise Unnamed
