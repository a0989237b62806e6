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

from tilewise.kernels.shared.text import kernel_text

COMPILER = shutil.which("g++") or shutil.which("clang++")
SHIM = Path(__file__).with_name("card_shim.h")
FLAGS = ("-std=c++17", "-O1", "-w", "-fwrapv", "-ffp-contract=off", "-fno-strict-aliasing", "-shared", "-fPIC")


HOPPER = Path(__file__).with_name("hopper_shim.h")
AMPERE = Path(__file__).with_name("mma_shim.h")


def on_hopper(text):
    """The text of a kernel of Hopper's instructions with those that are done on the host."""
    text = text.replace(kernel_text("shared/ptx.cuh"), f'#include "{HOPPER}"\n')
    text = text.replace("extern __shared__ char memory[];", "char* memory = (char*)::memory;")
    narrowing = r'asm\("cvt\.rn\.(bf16|f16)x2\.f32 %0, %1, %2;".*?\);'
    text = re.sub(narrowing, lambda m: f"pair = {m[1]}_bits(low) | {m[1]}_bits(high) << 16;", text)
    text = re.sub(r'asm\("cvt\.f32\.f16 %0, %1;".*?\);', "value = half_bits_to_float(bits);", text)
    return re.sub(r"asm volatile\(\"wgmma\.mma_async.*?\);\n}", _wgmma, text, flags=re.DOTALL)


def on_ampere(text):
    """The text of a kernel of asynchronous copies and products of fragments, done on the host."""
    text = re.sub(r"static __device__ __forceinline__ void (multiply|round_word)\(.*?\n}\n", "", text, flags=re.DOTALL)
    return text.replace(kernel_text("mma_sync/copies.cuh"), f'#include "{AMPERE}"\n')


def _wgmma(found):
    """A thread's own sums of 64 rows and the instruction's columns, over 16 of k."""
    width, kind, *turned = re.search(r"m64n(\d+)k16\.f32\.(\w+)\.\w+ .*?, 1, 1, 1, (\d), (\d);", found[0]).groups()
    number = "bf16_value" if kind == "bf16" else "half_bits_to_float"
    return f"""
    int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16 + lane / 4;
    static float of_m[1024][2][16];
    auto number = [](unsigned short bits) {{ return {number}(bits); }};
    float (&mine)[2][16] = of_m[threadIdx.x];
    for (int half = 0; half < 2; ++half)
        for (int k = 0; k < 16; ++k) mine[half][k] = number(operand_at(left, row + 8 * half, k, {turned[0]}));
    for (int i = 0; i < {width} / 2; i += 4)
        for (int e = 0; e < 2; ++e) {{
            for (int k = 0; k < 16; ++k) {{
                float of_n = number(operand_at(right, i * 2 + lane % 4 * 2 + e, k, {turned[1]}));
                sums[i + e] += mine[0][k] * of_n;
                sums[i + 2 + e] += mine[1][k] * of_n;
            }}
        }}
}}"""


def built(text, kernel, folder):
    """A function of (grid, block, arguments), arguments being ctypes values."""
    if kernel_text("shared/ptx.cuh") in text:
        text = on_hopper(text)
    if kernel_text("mma_sync/copies.cuh") in text:
        text = on_ampere(text)
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
