"""Arrays of any library in, results of the same library out. A framework is used only if it is already imported."""

from tilewise.arrays.find import find_library
from tilewise.arrays.operand import ArrayOf, HostArray, Kind, Library, Number, Operand, Other

__all__ = ["ArrayOf", "HostArray", "Kind", "Library", "Number", "Operand", "Other", "find_library"]
