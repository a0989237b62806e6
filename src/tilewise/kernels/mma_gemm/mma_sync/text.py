"""The text of `mma_sync.cu`: an element's types, its product of fragments, and the kernel."""

from __future__ import annotations

from dataclasses import dataclass

from tilewise.algebra.dtypes import DType
from tilewise.algebra.to_cuda import c_name
from tilewise.core.epilogue import PLAIN, Epilogue
from tilewise.kernels.keys import Written
from tilewise.kernels.mma_gemm.mma_sync.model import MmaTile
from tilewise.kernels.shared.epilogue import render_epilogue
from tilewise.kernels.shared.text import kernel_text
from tilewise.kernels.transforms.sums import render_numbers, sum_of

GROUP = 8  # rows of tiles that are walked together, so that their columns of N stay in L2
# an element's kind and the sums' in the instruction's name, and how many k it takes
INSTRUCTIONS = {
    "bfloat16": ("bf16", "f32", 16),
    "float16": ("f16", "f32", 16),
    "float32": ("tf32", "f32", 8),
    "int8": ("s8", "s32", 32),
    "uint8": ("u8", "s32", 32),
}


@dataclass(frozen=True)
class Form:
    """How operands lie and sums leave: bytes of a copy, of a store; whether k lies side by side."""

    m_along_k: bool
    n_along_k: bool
    vector_m: int = 16
    vector_n: int = 16
    store: int = 16
    accumulate: bool = False
    split: bool = False  # sums are stored as they are, though P is of another dtype


@Written
def render_mma_sync(
    dtype: DType, result: DType, tile: MmaTile, stages: int, form: Form, epilogue: Epilogue = PLAIN, arch: int = 80
) -> str:
    """`arch`: from 90 on float64 has larger products of fragments."""
    size, sums = dtype.itemsize, sum_of(dtype)
    step = tile.step_k or (4 if size == 8 else INSTRUCTIONS[dtype.name][2])
    defines = {
        "SIZE": size,
        "BLOCK_M": tile.rows,
        "BLOCK_N": tile.cols,
        "WARPS_M": tile.warps_m,
        "WARPS_N": tile.warps_n,
        "STAGES": stages,
        "RESIDENT": tile.resident,
        "ROLLING": int(tile.rolling),
        "GROUP": GROUP,
        "STEP_K": step,
        "WORDS_M": step // 2 if size == 8 else 4,
        "WORDS_N": step // 4 if size == 8 else 2,
        "ROUNDED": int(size == 4),
        "M_ALONG_K": int(form.m_along_k),
        "N_ALONG_K": int(form.n_along_k),
        "VECTOR_M": form.vector_m,
        "VECTOR_N": form.vector_n,
        "STORE_BYTES": form.store,
    }
    made = sums if form.split else result
    return "\n".join(
        (
            f"// mma_sync over {dtype}, sums in {sums}, P in {made}",
            *(f"#define {name} {value}" for name, value in defines.items()),
            f"typedef {c_name(dtype)} Element;",
            f"typedef {'double' if size == 8 else 'unsigned'} Word;  // of a fragment",
            f"typedef {({16: 'uint4', 8: 'uint2'}).get(form.store, 'unsigned')} Stored;",
            render_numbers(sums, made, form.accumulate and not form.split),
            render_epilogue(PLAIN if form.split else epilogue, sums),
            product_of_fragments(dtype, step, arch),
            kernel_text("shared/in_turn.cuh"),
            kernel_text("mma_gemm/mma_sync/copies.cuh"),
            kernel_text("mma_gemm/mma_sync/mma_sync.cu"),
        )
    )


def product_of_fragments(dtype: DType, step: int, arch: int) -> str:
    """`multiply`: sums of 16 × 8 cells of P take on `step` of k."""
    if dtype.itemsize == 8:
        return _double_product(step, arch)
    kind, sum_kind, k = INSTRUCTIONS[dtype.name]
    letter = "f" if sum_kind == "f32" else "r"
    bound = ", ".join(f'"+{letter}"(sums[{i}])' for i in range(4))
    rounding = ""
    if kind == "tf32":
        rounding = """static __device__ __forceinline__ void round_word(unsigned& word) {
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(word) : "f"(__uint_as_float(word)));
}
"""
    return f"""{rounding}static __device__ __forceinline__ void multiply(
    Sum (&sums)[4], const unsigned (&m)[4], const unsigned (&n)[2])
{{
    asm volatile("mma.sync.aligned.m16n8k{k}.row.col.{sum_kind}.{kind}.{kind}.{sum_kind} "
                 "{{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}};"
                 : {bound}
                 : "r"(m[0]), "r"(m[1]), "r"(m[2]), "r"(m[3]), "r"(n[0]), "r"(n[1]));
}}
"""


def _double_product(step: int, arch: int) -> str:
    """On Hopper one instruction; before it, eight rows and four of k at a time."""
    words_m, words_n = step // 2, step // 4
    head = f"""static __device__ __forceinline__ void multiply(
    double (&sums)[4], const double (&m)[{words_m}], const double (&n)[{words_n}])
"""
    if arch >= 90:
        of_m = ", ".join(f"%{4 + i}" for i in range(words_m))
        of_n = ", ".join(f"%{4 + words_m + i}" for i in range(words_n))
        given = ", ".join([f'"d"(m[{i}])' for i in range(words_m)] + [f'"d"(n[{i}])' for i in range(words_n)])
        return f"""{head}{{
    asm volatile("mma.sync.aligned.m16n8k{step}.row.col.f64.f64.f64.f64 "
                 "{{%0, %1, %2, %3}}, {{{of_m}}}, {{{of_n}}}, {{%0, %1, %2, %3}};"
                 : "+d"(sums[0]), "+d"(sums[1]), "+d"(sums[2]), "+d"(sums[3])
                 : {given});
}}
"""
    return f"""{head}{{
    #pragma unroll
    for (int i = 0; i < {words_m}; ++i)
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {{%0, %1}}, {{%2}}, {{%3}}, {{%0, %1}};"
                     : "+d"(sums[i % 2 * 2]), "+d"(sums[i % 2 * 2 + 1])
                     : "d"(m[i]), "d"(n[i / 2]));
}}
"""
