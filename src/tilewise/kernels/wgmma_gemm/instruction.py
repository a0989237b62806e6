"""`wgmma` as a function of CUDA C: it has one operand for each of its sums, so the text is made for a width."""

from __future__ import annotations


def wgmma_text(
    width: int,
    shape: str,
    flags: str,
    *,
    sums: str = "float",
    from_registers: bool = False,
    adds: bool = False,
    function: str = "wgmma",
    of: int = 0,
) -> str:
    """sums += left * right for 64 x `width` of P by 128 threads. `shape`: k and dtypes, k16.f32.bf16.bf16 say; `flags`:
    the signs of both operands, and of halves whether they are transposed; `from_registers`: the left operand, else
    both have descriptors; `adds`: a last parameter says whether onto what the sums hold; `of`: the columns that the
    sums are of, where they are more."""
    count, letter = width // 2, "r" if sums == "int" else "f"
    left = [f"left{i}" for i in range(4)] if from_registers else ["left"]
    numbers = ", ".join(f"%{count + i}" for i in range(len(left)))
    kind, constraint, right = "unsigned long long", "l", count + len(left)
    if from_registers:
        kind, constraint, numbers = "unsigned", "r", f"{{{numbers}}}"
    taken = [f"{kind} {name}" for name in left] + ["unsigned long long right"] + ["int add"] * adds
    given = [f'"{constraint}"({name})' for name in left] + ['"l"(right)'] + ['"r"(add)'] * adds
    made = ", ".join(f"%{i}" for i in range(count))
    bound = ", ".join(f'"+{letter}"(sums[{i}])' for i in range(count))
    name = f"wgmma.mma_async.sync.aligned.m64n{width}{shape}"
    code = f"{name} {{{made}}}, {numbers}, %{right}, {'p' if adds else '1'}{flags};"
    if adds:
        code = f'{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{right + 1}, 0;\\n"\n                 "{code}\\n}}\\n'
    return f"""// 64 x {width} of P, by 128 threads
static __device__ __forceinline__ void {function}(
    {sums} (&sums)[{(of or width) // 2}], {", ".join(taken)})
{{
    asm volatile("{code}"
                 : {bound}
                 : {", ".join(given)});
}}
"""
