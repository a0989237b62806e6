// gather: P is the sum of `splits` float32 matrices, each made from its own part of k, always added in the same order.
//
// Layout: partial s starts s * m * lead floats after the first. SHARES threads make a pair of neighbours of P: each adds up
//   every SHARES-th partial, and the first of them adds up their sums.
// Edges: a last column without a neighbour is made alone. Barrier: one, before the shares are added up.

#define PAIRS (256 / SHARES)

extern "C" __global__ void __launch_bounds__(256) gather(
    const float* partials, Element* P, Epilogue epilogue, int m, int n, int splits, long long lead, long long ldp)
{
    __shared__ float2 shares[SHARES][PAIRS];
    wait_for_kernel_before();
    int pairs = (n + 1) / 2, share = threadIdx.x / PAIRS;
    long long pair = (long long)blockIdx.x * PAIRS + threadIdx.x % PAIRS;
    bool inside = pair < (long long)m * pairs;
    int row = (int)(pair / pairs), column = (int)(pair % pairs) * 2;
    float2 sum = make_float2(0.0f, 0.0f);
    if (inside) {
        const float2* from = reinterpret_cast<const float2*>(partials + row * lead + column);
        #pragma unroll 4
        for (int s = share; s < splits; s += SHARES) {
            float2 part = from[s * (m * lead / 2)];
            sum.x += part.x;
            sum.y += part.y;
        }
    }
    shares[share][threadIdx.x % PAIRS] = sum;
    __syncthreads();
    if (share || !inside) return;
    #pragma unroll
    for (int other = 1; other < SHARES; ++other) {
        sum.x += shares[other][threadIdx.x].x;
        sum.y += shares[other][threadIdx.x].y;
    }
    Element* to = P + row * ldp + column;
    bool two = column + 1 < n;
    sum.x = finish(sum.x, ACCUMULATE ? widen(to[0]) : 0.0f, bias_of(epilogue, column, true), epilogue);
    sum.y = finish(sum.y, ACCUMULATE && two ? widen(to[1]) : 0.0f, bias_of(epilogue, column + 1, two), epilogue);
    unsigned made = narrow_pair(sum.x, sum.y);
    to[0] = (Element)(made & 0xffffu);
    if (two) to[1] = (Element)(made >> 16);
}
