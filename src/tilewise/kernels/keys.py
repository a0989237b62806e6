"""Kernel keys: a short string names a CUDA text by its renderer and arguments; the text is rendered to be compiled.

Rendering a text of 10 to 50 KB takes longer than everything else in laying out a launch, and most texts are compiled
already. A built kernel is found by its key of about a hundred characters (`backends/cuda/bundle.py`). A text with an
argument that has no key, a user's semiring for example, is found by the text itself.
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
MOST_KEYS = 4096  # that a renderer caches
MOST_TEXTS = 256


class KernelKey(str):
    """The key of a text, used in its place: equal keys are equal texts."""

    __slots__ = ("render", "renderers")
    renderers: str  # names of the functions that render it
    render: Callable[[], str]


def text_of(text: str) -> str:
    """The text of a key; of a text itself."""
    return text.render() if text.__class__ is KernelKey else text


class NoKey(Exception):
    """An argument of a renderer cannot be part of a key."""


class KeyedRenderer(Generic[Given]):
    """A function that renders texts: a call returns the text, `key` the key of what the call would return."""

    def __init__(self, render: Callable[Given, str]) -> None:
        update_wrapper(self, render)
        self._text = lru_cache(maxsize=MOST_TEXTS)(render)
        module = render.__module__.removeprefix("tilewise.kernels.").removesuffix(".text")
        self._name = f"{module}.{render.__qualname__}"
        self._defaults = {name: one.default for name, one in signature(render).parameters.items()}
        self._keys: dict[Any, str] = {}

    def __call__(self, *args: Given.args, **kw: Given.kwargs) -> str:
        return self._text(*(text_of(x) if x.__class__ is KernelKey else x for x in args), **kw)  # type: ignore[arg-type]

    def key(self, *args: Given.args, **kw: Given.kwargs) -> str:
        """The key of the text, or the text where it has none."""
        given: Any = (args, *kw.items()) if kw else args
        found = self._keys.get(given)
        if found is None:
            if len(self._keys) >= MOST_KEYS:
                self._keys.clear()
            found = self._keys[given] = self._key(args, kw)
        return found

    def _key(self, args: tuple[Any, ...], kw: dict[str, Any]) -> str:
        given = {**self._defaults, **dict(zip(self._defaults, args, strict=False)), **kw}
        try:
            made = KernelKey(f"{self._name}({','.join([key_part(value) for value in given.values()])})")
        except NoKey:
            return self(*args, **kw)
        made.renderers = " ".join((self._name, *(x.renderers for x in args if isinstance(x, KernelKey))))
        made.render = partial(self, *args, **kw)
        return made


def key_part(value: Any) -> str:
    """An argument as part of a key: equal parts for equal values, different ones for others."""
    kind = value.__class__
    if kind is str:
        return repr(value)
    if kind is bool or kind is int:
        return str(int(value))
    if value is None or kind is KernelKey or kind is float:
        return str(value)
    return _key_part(value)


@lru_cache(maxsize=4096)
def _key_part(value: Any) -> str:
    if isinstance(value, DType):
        return value.name
    if isinstance(value, Semiring):
        if SEMIRINGS.get(value.name) is not value:
            raise NoKey
        return value.name
    if isinstance(value, Algebra):  # its other fields follow from these
        return f"{key_part(value.semiring)}:{value.element}:{value.partial}:{value.result}"
    if isinstance(value, tuple):  # a named tuple equals a tuple
        return f"({','.join(map(key_part, value))})"
    if is_dataclass(value) and not isinstance(value, type):
        return f"{type(value).__name__}({','.join([key_part(getattr(value, one.name)) for one in fields(value)])})"
    raise NoKey
