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
    signature = re.search(
        rf"void\s+(?:__launch_bounds__\([^)]*\)*\s*|BOUNDS\s+)?{kernel}\((.*?)\)\s*\{{", text, re.DOTALL
    )
    lines, keep = [], [True]
    for line in signature.group(1).splitlines():
        if line.startswith("#if"):
            keep.append(f"#define {line.split()[1]} 1" in text)
        elif line.startswith("#endif"):
            keep.pop()
        elif keep[-1]:
            lines.append(line)
    params = " ".join(lines)
    names = [part.split()[-1].lstrip("*") for part in params.split(",")]
    name = f"{kernel}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    path, library = folder / f"{name}.cpp", folder / f"{name}.so"
    path.write_text(
        f'#include "{SHIM}"\n{text}\n'
        f'extern "C" void run(unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, {params}) {{\n'
        f"    launch({{gx, gy, gz}}, {{bx, by, 1}}, [=] {{ {kernel}({', '.join(names)}); }}, spoil_shared);\n}}\n"
    )
    if not library.exists():
        subprocess.run([COMPILER, *FLAGS, "-o", library, path], check=True)
    run = ctypes.CDLL(str(library)).run

    def call(grid, block, arguments):
        run(*(ctypes.c_uint(x) for x in ((*grid, 1, 1)[:3] + (*block, 1)[:2])), *arguments)

    return call
