"""`multiply`: products of fragments by mma.sync, rendered for an element."""

from __future__ import annotations

from tilewise.algebra.dtypes import DType

# an element's kind and the sums' in the instruction's name, and how many k it takes
INSTRUCTIONS = {
    "bfloat16": ("bf16", "f32", 16),
    "float16": ("f16", "f32", 16),
    "float32": ("tf32", "f32", 8),
    "int8": ("s8", "s32", 32),
    "uint8": ("u8", "s32", 32),
}


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
