"""A rendered kernel compiled by the installed C++ compiler and run on the host, its threads as fibers.

What only a card has (asynchronous copies, packed halves) is not there: the text's code for older cards is run.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from made_once import made_once
from tilewise.kernels.shared.text import kernel_text

COMPILER = shutil.which("g++") or shutil.which("clang++")
SHIM = Path(__file__).with_name("card_shim.h")
FLAGS = ("-std=c++17", "-O1", "-w", "-fwrapv", "-ffp-contract=off", "-fno-strict-aliasing", "-fsigned-char", "-fPIC")


HOPPER = Path(__file__).with_name("hopper_shim.h")
AMPERE = Path(__file__).with_name("mma_shim.h")


def on_hopper(text):
    """The text of a kernel of Hopper's instructions with those that are done on the host."""
    text = text.replace(kernel_text("shared/cluster.cuh"), "")  # which the shim has, too
    text = text.replace(kernel_text("shared/ptx.cuh"), f'#include "{HOPPER}"\n')
    text = text.replace("extern __shared__ char memory[];", "char* memory = (char*)::memory;")
    narrowing = r'asm\("cvt\.rn\.(bf16|f16)x2\.f32 %0, %1, %2;".*?\);'
    text = re.sub(narrowing, lambda m: f"pair = {m[1]}_bits(low) | {m[1]}_bits(high) << 16;", text)
    text = re.sub(r'asm\("cvt\.f32\.f16 %0, %1;".*?\);', "value = half_bits_to_float(bits);", text)
    text = re.sub(r'asm\("cvt\.rna?\.tf32\.f32 %0, %1;".*?\);', "bits = __float_as_uint(x);", text)
    text = re.sub(r"(unsigned left0,.*?int add\)\n{\n)(.*?);\n}", _wgmma_from_registers, text, flags=re.DOTALL)
    predicated = r'"{\\n\.reg \.pred p;[^\n]*\n\s*'
    return re.sub(rf'asm volatile\((?:{predicated})?"wgmma\.mma_async.*?\);\n}}', _wgmma, text, flags=re.DOTALL)


def on_ampere(text):
    """The text of a kernel of asynchronous copies and products of fragments, done on the host."""
    text = re.sub(r"static __device__ __forceinline__ void (multiply|round_word)\(.*?\n}\n", "", text, flags=re.DOTALL)
    return text.replace(kernel_text("mma_gemm/copies.cuh"), f'#include "{AMPERE}"\n')


def _wgmma(found):
    """A thread's own sums of 64 rows and the instruction's columns, over 16 of k."""
    instruction = r"m64n(\d+)k16\.f32\.(\w+)\.\w+ .*?, (1|p), 1, 1, (\d), (\d);"
    width, kind, onto, *transposed = re.search(instruction, found[0]).groups()
    number = "bf16_value" if kind == "bf16" else "half_bits_to_float"
    return f"""
    int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16 + lane / 4;
    static float of_m[1024][2][16];
    auto number = [](unsigned short bits) {{ return {number}(bits); }};
    float (&mine)[2][16] = of_m[threadIdx.x];
    for (int i = 0; !{"add" if onto == "p" else "1"} && i < {width} / 2; ++i) sums[i] = 0;
    for (int half = 0; half < 2; ++half)
        for (int k = 0; k < 16; ++k) mine[half][k] = number(operand_at(left, row + 8 * half, k, {transposed[0]}));
    for (int i = 0; i < {width} / 2; i += 4)
        for (int e = 0; e < 2; ++e) {{
            for (int k = 0; k < 16; ++k) {{
                float of_n = number(operand_at(right, i * 2 + lane % 4 * 2 + e, k, {transposed[1]}));
                sums[i + e] += mine[0][k] * of_n;
                sums[i + 2 + e] += mine[1][k] * of_n;
            }}
        }}
}}"""


def _wgmma_from_registers(found):
    """The same with its left operand in the lanes' registers: lane (g, t) has rows g and g + 8, k and half of k on."""
    width, depth = map(int, re.search(r"m64n(\d+)k(\d+)\.f32", found[2]).groups())
    if depth == 16:
        left, right = "of_pair(held[k / 2 % 4 + quad][half + k / 8 * 2], k % 2)", "bf16_value(element(k))"
    else:
        left = "__uint_as_float(held[k % 4 + quad][half + k / 4 * 2])"
        right = "__uint_as_float(element(2 * k) | (unsigned)element(2 * k + 1) << 16)"
    return f"""{found[1]}
    static unsigned given[1024][4];
    int me = threadIdx.x, lane = me % 32;
    unsigned mine[4] = {{left0, left1, left2, left3}};
    memcpy(given[me], mine, sizeof mine);
    take_turns();
    unsigned (*held)[4] = given + me / 32 * 32, quad = lane / 4 * 4;
    auto of_pair = [](unsigned pair, int high) {{ return bf16_value((unsigned short)(pair >> 16 * high)); }};
    for (int i = 0; i < {width} / 2; ++i) {{
        int half = i / 2 % 2, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
        auto element = [&](int at) {{ return operand_at(right, column, at, false); }};
        float sum = add ? sums[i] : 0.0f;
        for (int k = 0; k < {depth}; ++k) sum += {left} * {right};
        sums[i] = sum;
    }}
    take_turns();
}}"""


# ldmatrix: lane 8 q + r holds the address of line r of matrix q; a lane gets two neighbours of line lane / 4, or,
# transposed, of column lane / 4.
FRAGMENTS = """
static unsigned __cvta_generic_to_shared(const void* at) { return (unsigned)((const unsigned char*)at - memory); }

template <bool TRANSPOSED>
static void read_matrices(unsigned at, unsigned& a, unsigned& b, unsigned& c, unsigned& d) {
    unsigned* made[4] = {&a, &b, &c, &d};
    int lane = threadIdx.x % 32;
    for (int q = 0; q < 4; ++q) {
        unsigned one = __shfl_sync(~0u, at, q * 8 + (TRANSPOSED ? lane % 4 * 2 : lane / 4));
        unsigned two = __shfl_sync(~0u, at, q * 8 + (TRANSPOSED ? lane % 4 * 2 + 1 : lane / 4));
        int first = TRANSPOSED ? lane / 4 : lane % 4 * 2, second = TRANSPOSED ? first : first + 1;
        auto* low = reinterpret_cast<const unsigned short*>(memory + one);
        auto* high = reinterpret_cast<const unsigned short*>(memory + two);
        *made[q] = low[first] | (unsigned)high[second] << 16;
    }
}
"""


def with_fragments(text):
    """The text of a kernel of `mma.sync` over halves, its products made by the lanes of a warp on the host."""
    text = text.replace(kernel_text("mma_gemm/matrices.cuh"), FRAGMENTS)
    text = _cvt(text.replace(kernel_text("mma_gemm/copies.cuh"), f'#include "{AMPERE}"\n'))
    return re.sub(r'asm volatile\("mma\.sync\.aligned\.m16n8k16.*?\);\n}', _mma, text, flags=re.DOTALL)


def _cvt(text):
    """Conversions to and from halves as functions of the host."""
    text = re.sub(r'asm\("cvt\.rn\.(bf16|f16)\.f32 %0, %1;".*?\);', lambda m: f"y = {m[1]}_bits(x);", text)
    paired = r'asm\("cvt\.rn\.(bf16|f16)x2\.f32 %0, %1, %2;".*?\);'
    text = re.sub(paired, lambda m: f"z = {m[1]}_bits(x) | {m[1]}_bits(y) << 16;", text)
    return re.sub(r'asm\("cvt\.f32\.f16 %0, %1;".*?\);', "y = half_bits_to_float(x);", text)


def on_any_card(text):
    """The text of `mma_sync` for any card and element: its instructions one by one, on the host."""
    for copies in ("copies", "register_copies"):
        text = text.replace(kernel_text(f"mma_gemm/{copies}.cuh"), "")
    names = "read_matrices|read_word|round_word"
    text = re.sub(
        rf"(template <bool TRANSPOSED>\n)?static __device__ __forceinline__ void ({names})\(.*?\n}}\n",
        "",
        text,
        flags=re.DOTALL,
    )
    if "typedef double Word;" in text:
        text = re.sub(r"static __device__ __forceinline__ void multiply\(.*?\n}\n", "", text, flags=re.DOTALL)
    text = re.sub(r'asm volatile\("mma\.sync\.aligned\..*?\);', _instruction, text, flags=re.DOTALL)
    staged = int("#define REGISTER_STAGED 1" in text)
    size = re.search(r"#define SIZE (\d)", text)[1]
    return f'#define HOST_STAGED {staged}\n#define HOST_SIZE {size}\n#include "{AMPERE}"\n{_cvt(text)}'


def _instruction(found):
    """One mma.sync of 8 or 16 rows: which sums, words of M and words of N it takes."""
    kinds = re.search(r"row\.col\.\w+\.(\w+)\.(\w+)\.", found[0]).groups()
    given = {
        name: ", ".join(f"{name}[{i}]" for i in re.findall(rf"{name}\[(\d)\]", found[0])) for name in ("sums", "m", "n")
    }
    sums = given["sums"].replace("sums", "&sums")
    return (
        f"products_of_words<{kinds[0]}_number, {kinds[1]}_number, Sum>({{{sums}}}, {{{given['m']}}}, {{{given['n']}}});"
    )


def _mma(found):
    """Lane (g, t) has sums of rows g and g + 8, columns 2 t and 2 t + 1; k and k + 1 of a row are 32 bits."""
    number = "bf16_value" if ".bf16." in found[0] else "half_bits_to_float"
    return f"""
    int lane = threadIdx.x % 32;
    for (int k = 0; k < 16; k += 2) {{
        unsigned rows[2], cols[2];
        for (int e = 0; e < 2; ++e) {{
            rows[e] = __shfl_sync(~0u, m[k / 8 * 2 + e], lane / 4 * 4 + k % 8 / 2);
            cols[e] = __shfl_sync(~0u, n[k / 8], (lane % 4 * 2 + e) * 4 + k % 8 / 2);
        }}
        for (int half = 0; half < 32; half += 16)
            for (int i = 0; i < 4; ++i)
                sums[i] += {number}((unsigned short)(rows[i / 2] >> half)) *
                           {number}((unsigned short)(cols[i % 2] >> half));
    }}
}}"""


@cache
def headers():
    """A folder with what every kernel includes, precompiled: to read it is most of the work for a little kernel. It is
    2.5 s of work, which one worker does for all."""
    sources = [SHIM, SHIM.with_name("fibers.h")]
    key = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    made = Path(os.environ["TILEWISE_CACHE_DIR"]) / f"shim-{key}"

    def precompiled():
        made.mkdir(exist_ok=True)
        for path in sources:
            shutil.copy(path, made)
        shim = made / SHIM.name
        subprocess.run([COMPILER, *FLAGS, "-x", "c++-header", "-o", f"{shim}.gch", shim], check=True)
        return made

    return made_once(made.with_suffix(".pickle"), precompiled)


def built(text, kernel, folder):
    """A function of (grid, block, arguments), arguments being ctypes values; `allowed` says where copies may read,
    `shared` how many bytes of shared memory the launch has."""
    halves = kernel_text("mma_gemm/matrices.cuh") in text or "mma.sync.aligned.m16n8k16" in text
    if kernel == "mma_sync":
        text = on_any_card(text)
    elif halves:
        text = with_fragments(text)
    elif kernel == "add_parts":
        text = _cvt(text)
    if kernel == "split" or kernel_text("shared/ptx.cuh") in text:
        text = on_hopper(text)
    if halves or kernel == "mma_sync":
        pass
    elif kernel_text("mma_gemm/copies.cuh") in text:
        text = on_ampere(text)
    elif "mma.sync.aligned" in text:
        text = on_ampere(f'#include "{AMPERE}"\n{text}')
    text = re.sub(r"extern __shared__.*memory\[\];", "", text).replace('extern "C" __global__', "__global__")
    text = re.sub(r"\*reinterpret_cast<(uint4|uint2)\*>\(([^;=]+)\) =(?!=)", r"*on_a_boundary<\1>(\2) =", text)
    text = text.replace('asm volatile("" : "+l"(at))', 'asm volatile("" : "+r"(at))')  # "l" is no register of ARM's
    text = text.replace("__half2float(__ushort_as_half(bits))", "half_bits_to_float(bits)")
    text = text.replace("__half_as_ushort(__float2half_rn(value))", "float_to_half_bits(value)")
    name = f"{kernel}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    path, library = folder / f"{name}.cpp", folder / f"{name}.so"
    path.write_text(
        f'#include "{SHIM.name}"\n{text}\n'
        "#include <utility>\n"
        "template <class... A, size_t... I>\n"
        "static void with(void (*kernel)(A...), void** given, std::index_sequence<I...>)\n"
        "{ kernel(*(A*)given[I]...); }\n"
        "template <class... A> static void with(void (*kernel)(A...), void** given)\n"
        "{ with(kernel, given, std::index_sequence_for<A...>{}); }\n"
        'extern "C" void run(unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,\n'
        "                    unsigned cluster, void** given) {\n"
        f"    auto work = [=] {{ with({kernel}, given); }};\n"
        "    launch({gx, gy, gz}, {bx, by, 1}, work, spoil_shared, cluster, keep_shared, bring_shared);\n}\n"
    )
    if not library.exists():
        subprocess.run([COMPILER, *FLAGS, "-shared", f"-I{headers()}", "-o", library, path], check=True)
    loaded = ctypes.CDLL(str(library))
    run = loaded.run

    def call(grid, block, arguments, cluster=1, allowed=(), shared=None):
        if shared is not None:
            loaded.guard(ctypes.c_size_t(shared))
        loaded.allow(None, None)
        for low, high in allowed:
            loaded.allow(ctypes.c_void_p(low), ctypes.c_void_p(high))
        sizes = (ctypes.c_uint(x) for x in ((*grid, 1, 1)[:3] + (*block, 1)[:2] + (cluster,)))
        run(*sizes, (ctypes.c_void_p * len(arguments))(*map(ctypes.addressof, arguments)))

    return call
