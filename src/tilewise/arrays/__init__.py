"""Arrays of any library in, results of the same library out. A framework is used only if it is already imported."""

from tilewise.arrays.find import find_library
from tilewise.arrays.operand import HostArray, Library, Operand

__all__ = ["HostArray", "Library", "Operand", "find_library"]
