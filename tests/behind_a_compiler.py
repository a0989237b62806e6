"""A rendered kernel compiled by the C++ compiler at hand and run on the host, its threads as fibers.

What only a card has (asynchronous copies, packed halves) is not there: the text's own way for older cards is run.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import shutil
import subprocess
from pathlib import Path

COMPILER = shutil.which("g++") or shutil.which("clang++")
SHIM = Path(__file__).with_name("card_shim.h")
FLAGS = ("-std=c++17", "-O1", "-w", "-fwrapv", "-ffp-contract=off", "-fno-strict-aliasing", "-shared", "-fPIC")


def built(text, kernel, folder):
    """A function of (grid, block, arguments), arguments being ctypes values."""
    text = re.sub(r"extern __shared__.*memory\[\];", "", text).replace('extern "C" __global__', "__global__")
    text = text.replace("__half2float(__ushort_as_half(bits))", "half_bits_to_float(bits)")
    text = text.replace("__half_as_ushort(__float2half_rn(value))", "float_to_half_bits(value)")
    name = f"{kernel}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    path, library = folder / f"{name}.cpp", folder / f"{name}.so"
    path.write_text(
        f'#include "{SHIM}"\n{text}\n'
        "#include <utility>\n"
        "template <class... A, size_t... I>\n"
        "static void with(void (*kernel)(A...), void** given, std::index_sequence<I...>)\n"
        "{ kernel(*(A*)given[I]...); }\n"
        "template <class... A> static void with(void (*kernel)(A...), void** given)\n"
        "{ with(kernel, given, std::index_sequence_for<A...>{}); }\n"
        'extern "C" void run(unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, void** given) {\n'
        f"    launch({{gx, gy, gz}}, {{bx, by, 1}}, [=] {{ with({kernel}, given); }}, spoil_shared);\n}}\n"
    )
    if not library.exists():
        subprocess.run([COMPILER, *FLAGS, "-o", library, path], check=True)
    run = ctypes.CDLL(str(library)).run

    def call(grid, block, arguments):
        sizes = (ctypes.c_uint(x) for x in ((*grid, 1, 1)[:3] + (*block, 1)[:2]))
        run(*sizes, (ctypes.c_void_p * len(arguments))(*map(ctypes.addressof, arguments)))

    return call
