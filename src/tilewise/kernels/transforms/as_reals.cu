// as_reals: the operands of a complex product as those of a real one of the same flops, and its sums back into pairs.
//
// A complex number lies as (re, im), so rows of M over k are rows of 2 k real numbers. `expand` writes each element x + iy
// of N as the 2x2 block ((x, y), (-y, x)): M times that is P, re and im side by side. `split` writes the real parts of M
// above its imaginary ones, for a product with N as it lies; `join` adds up what then belongs together.
// Layout: `line` runs over the axis along which the source lies side by side, in source and target alike; blockIdx.z is
// the member of a stack. Barrier: none; every element is one thread's.

struct Cells {
    int lines, length;
    long long apart, step, member;  // of the source, in pairs: from line to line, along a line, from member to member
    long long apart_to, member_to;  // of the target, in its own elements
};

#define EVERY_CELL(cells) \
    for (int line = blockIdx.y * blockDim.y + threadIdx.y; line < cells.lines; line += gridDim.y * blockDim.y) \
        for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < cells.length; at += gridDim.x * blockDim.x)

// sign: -1 where lines run along k, since a block is then written transposed.
extern "C" __global__ void expand(const Pair* __restrict__ from, Pair* __restrict__ to, Cells cells, Real sign)
{
    wait_on_dependent_grids();
    launch_dependent_grids();
    from += blockIdx.z * cells.member;
    to += blockIdx.z * cells.member_to;
    EVERY_CELL(cells)
    {
        Pair x = from[line * cells.apart + at * cells.step];
        Real y = sign * x.y;
        to[(2LL * line) * cells.apart_to + at] = Pair{x.x, y};
        to[(2LL * line + 1) * cells.apart_to + at] = Pair{-y, x.x};
    }
}

// plane: from a real part to its imaginary one.
extern "C" __global__ void split(const Pair* __restrict__ from, Real* __restrict__ to, Cells cells, long long plane)
{
    wait_on_dependent_grids();
    launch_dependent_grids();
    from += blockIdx.z * cells.member;
    to += blockIdx.z * cells.member_to;
    EVERY_CELL(cells)
    {
        Pair x = from[line * cells.apart + at * cells.step];
        to[line * cells.apart_to + at] = x.x;
        to[line * cells.apart_to + at + plane] = x.y;
    }
}

// Here the source is P, and the target the sums: rows of re(M) N, then rows of im(M) N, both in pairs.
extern "C" __global__ void join(Pair* __restrict__ made, const Pair* __restrict__ sums, Cells cells, int accumulate)
{
    wait_on_dependent_grids();
    launch_dependent_grids();
    made += blockIdx.z * cells.member;
    sums += blockIdx.z * cells.member_to;
    EVERY_CELL(cells)
    {
        Pair re = sums[line * cells.apart_to + at], im = sums[(line + (long long)cells.lines) * cells.apart_to + at];
        Pair* cell = made + (line * cells.apart + at * cells.step);
        Pair before = accumulate ? *cell : Pair{0, 0};
        *cell = Pair{before.x + (re.x - im.y), before.y + (re.y + im.x)};
    }
}
