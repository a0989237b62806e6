"""What a frozen value reckons of itself once, when it is first asked.

`functools.cached_property` takes a lock for it before Python 3.12, for all instances of a class together. A value that
two threads reckon at the same time is the same value, so none is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class once(Generic[T]):
    """A property that is kept in the instance's dictionary, where it is found before this is asked again."""

    def __init__(self, reckon: Callable[[Any], T]) -> None:
        self._reckon, self.__doc__ = reckon, reckon.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> once[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> once[T] | T:
        if instance is None:
            return self
        made = instance.__dict__[self._name] = self._reckon(instance)
        return made
