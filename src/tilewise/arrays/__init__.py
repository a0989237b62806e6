"""Any array in, the same kind out. A framework is looked up only if the caller has already imported it."""

from tilewise.arrays.find import find_library
from tilewise.arrays.operand import HostArray, Library, Operand

__all__ = ["HostArray", "Library", "Operand", "find_library"]
