"""`multiply`: products of fragments by mma.sync, rendered for an element and a card."""

from __future__ import annotations

from typing import NamedTuple

from tilewise.algebra.dtypes import DType


class Atom(NamedTuple):
    """An element in the instruction's name, its sums', the k of 16 × 8 sums in one fragment, and from which compute
    capability on; before compute capability `whole` a fragment's product takes two or four smaller instructions."""

    kind: str
    sums: str
    k: int
    since: int
    whole: int


AMPERE, ADA, TURING = 80, 89, 75
ATOMS = {
    "bfloat16": Atom("bf16", "f32", 16, AMPERE, AMPERE),
    "float16": Atom("f16", "f32", 16, TURING, AMPERE),
    "float32": Atom("tf32", "f32", 8, AMPERE, AMPERE),
    "float64": Atom("f64", "f64", 8, AMPERE, 90),
    "int8": Atom("s8", "s32", 32, TURING, AMPERE),
    "uint8": Atom("u8", "s32", 32, TURING, AMPERE),
    "float8_e4m3fn": Atom("e4m3", "f32", 32, ADA, AMPERE),
    "float8_e5m2": Atom("e5m2", "f32", 32, ADA, AMPERE),
}
Pieces = tuple[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]], ...]  # registers: of sums, of M, of N
WHOLE: Pieces = (((0, 1, 2, 3), (0, 1, 2, 3), (0, 1)),)
PIECES: dict[str, tuple[str, Pieces]] = {  # before `whole`: the instruction, and the registers of each piece
    "f16": ("m16n8k8", (((0, 1, 2, 3), (0, 1), (0,)), ((0, 1, 2, 3), (2, 3), (1,)))),
    "s8": ("m8n8k16", (((0, 1), (0,), (0,)), ((2, 3), (1,), (0,)), ((0, 1), (2,), (1,)), ((2, 3), (3,), (1,)))),
}
PIECES["u8"] = PIECES["s8"]
ROUNDING = """static __device__ __forceinline__ void round_word(unsigned& word) {
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(word) : "f"(__uint_as_float(word)));
}
"""


def product_of_fragments(dtype: DType, arch: int, right: DType | None = None) -> str:
    """`multiply`: adds the product of fragments to 16 × 8 sums; `right`: N's dtype, if not M's."""
    if dtype.itemsize == 8:
        return _double_product(arch)
    atom, other = ATOMS[dtype.name], ATOMS[(right or dtype).name]
    shape, pieces = PIECES[atom.kind] if arch < atom.whole else (f"m16n8k{atom.k}", WHOLE)
    name = f"mma.sync.aligned.{shape}.row.col.{atom.sums}.{atom.kind}.{other.kind}.{atom.sums}"
    return f"""{ROUNDING if atom.kind == "tf32" else ""}static __device__ __forceinline__ void multiply(
    Sum (&sums)[4], const unsigned (&m)[4], const unsigned (&n)[2])
{{
{"".join(_instruction(name, "f" if atom.sums == "f32" else "r", *piece) for piece in pieces)}}}
"""


def _instruction(name: str, letter: str, sums: tuple[int, ...], m: tuple[int, ...], n: tuple[int, ...]) -> str:
    bound = ", ".join(f'"+{letter}"(sums[{i}])' for i in sums)
    given = ", ".join([f'"r"(m[{i}])' for i in m] + [f'"r"(n[{i}])' for i in n])
    numbers = [f"%{i}" for i in range(len(sums) + len(m) + len(n))]
    of_sums, of_m, of_n = numbers[: len(sums)], numbers[len(sums) : -len(n)], numbers[-len(n) :]
    operands = (f"{{{', '.join(some)}}}" for some in (of_sums, of_m, of_n, of_sums))
    return f"""    asm volatile("{name} "
                 "{", ".join(operands)};"
                 : {bound}
                 : {given});
"""


def _double_product(arch: int) -> str:
    """On Hopper one instruction; before, m8n8k4 for each eight rows and four of k."""
    head = """static __device__ __forceinline__ void multiply(
    double (&sums)[4], const double (&m)[4], const double (&n)[2])
"""
    if arch >= 90:
        return (
            head
            + """{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+d"(sums[0]), "+d"(sums[1]), "+d"(sums[2]), "+d"(sums[3])
                 : "d"(m[0]), "d"(m[1]), "d"(m[2]), "d"(m[3]), "d"(n[0]), "d"(n[1]));
}
"""
        )
    return (
        head
        + """{
    #pragma unroll
    for (int i = 0; i < 4; ++i)
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                     : "+d"(sums[i % 2 * 2]), "+d"(sums[i % 2 * 2 + 1])
                     : "d"(m[i]), "d"(n[i / 2]));
}
"""
    )
