"""A cached property of frozen values without a lock.

Before Python 3.12 `functools.cached_property` takes one lock for all instances of a class. Two threads that compute the
property of a frozen value at the same time get equal results, so no lock is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class once(Generic[T]):
    """A property stored in the instance's dictionary on first access, where later accesses find it first."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute, self.__doc__ = compute, compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> once[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> once[T] | T:
        if instance is None:
            return self
        made = instance.__dict__[self._name] = self._compute(instance)
        return made
