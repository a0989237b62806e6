"""ctypes structures of kernel arguments, parsed from their declarations in the CUDA text."""

from __future__ import annotations

import ctypes
import re
from functools import lru_cache

from tilewise.kernels.shared.text import kernel_text

NUMBERS = {"int": ctypes.c_int, "long long": ctypes.c_longlong, "float": ctypes.c_float}
FIELD = re.compile(r"(?:const )?(\w[\w ]*?)(\*?) (\w+(?:, \w+)*)(?:\[(\d+)\])?")


@lru_cache(maxsize=64)
def struct_of(name: str, *files: str) -> type[ctypes.Structure]:
    """The `struct` of that name in kernel files as a ctypes structure; each element of an array is a field."""
    found = re.search(rf"\bstruct {name} {{(.*?)}};", "\n".join(map(kernel_text, files)), re.DOTALL)
    assert found, f"{name} is declared in none of {files}"
    data = re.sub(r"//.*", "", found[1].partition("__device__")[0])  # member functions come after the data
    fields = list[tuple[str, type]]()
    for declaration in data.split(";"):
        words = " ".join(declaration.split())
        if not words:
            continue
        parts = FIELD.fullmatch(words)
        assert parts, f"{words} is no declaration that {name} may have"
        kind = ctypes.c_void_p if parts[2] else NUMBERS.get(parts[1]) or struct_of(parts[1], *files)
        for one in parts[3].split(", "):
            fields += [(one, kind)] if parts[4] is None else [(f"{one}{i}", kind) for i in range(int(parts[4]))]
    return type(name, (ctypes.Structure,), {"_fields_": fields})
