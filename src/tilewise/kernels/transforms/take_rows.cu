// take_rows: line i of the target is line rows[i] of the source, times weights[i] with WEIGHTED (rounded once); a warp to a line.
//
// Layout: lines of `length` words of EACH elements, `row` elements apart, their elements `col` apart, to lines of elements side by
//   side, `lead` apart. Edges: where rows[i] is no line of the `available` ones, line i is filled with 0. Barrier: none.

struct __align__(EACH * sizeof(Element)) Word { Element of[EACH]; };

extern "C" __global__ void __launch_bounds__(256) take_rows(
    const Element* from, Element* to, const Offset* rows,
#if WEIGHTED
    const Weight* weights,
#endif
    long long count, int length, long long available, long long row, long long col, long long lead)
{
    long long line = blockIdx.x * 8ll + threadIdx.x / 32;
    if (line >= count) return;
    long long at = (long long)rows[line];
    bool inside = at >= 0 && at < available;
#if WEIGHTED
    Partial weight = WIDEN_WEIGHT(weights[line]);
#endif
    for (int i = threadIdx.x % 32; i < length; i += 32) {
#if WEIGHTED
        Word word = Word();
        if (inside) word = *reinterpret_cast<const Word*>(from + at * row + (long long)i * EACH * col);
        #pragma unroll
        for (int e = 0; e < EACH; ++e)
            if (inside) STORE(word.of[e], mul(weight, widen(word.of[e])));
#else
        Word word = inside ? *reinterpret_cast<const Word*>(from + at * row + (long long)i * EACH * col) : Word();
#endif
        *reinterpret_cast<Word*>(to + line * lead + i * EACH) = word;
    }
}
