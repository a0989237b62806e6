// mirrored: the tiles of a symmetric P (triangle.cuh), and the second store of one above the diagonal.
//
// Store: a lane's Quads of rows are neighbours in a row there, beside those of the next lanes: stores of 16 bytes in whole sectors, without
// shared memory. `row` and `col` are the lane's first of the tile, in P of m x n.

struct Corner : UpperTile {
    __device__ __forceinline__ Corner(int number, int m, int) : UpperTile(upper_tile(number, m)) {}
};

template <class Quad, int EACH>
static __device__ __forceinline__ void store_mirrored(
    const Sum (&sums)[TM][TN], Result* P, long long ldp, int m, int n, int row, int col)
{
    #pragma unroll
    for (int j = 0; j < TN; ++j) {
        int c = col + j / EACH * (LANES_N * EACH) + j % EACH;
        if (c >= n) continue;
        #pragma unroll
        for (int i = 0; i < TM; i += EACH) {
            int r = row + i / EACH * (LANES_M * EACH);
            Result* cell = P + c * ldp + r;
            if (P_ALIGNED && r + EACH <= m) {
                Quad quad;
                if (ACCUMULATE) quad = *reinterpret_cast<Quad*>(cell);
                #pragma unroll
                for (int e = 0; e < EACH; ++e) STORE(quad.lane[e], finish(sums[i + e][j]));
                *reinterpret_cast<Quad*>(cell) = quad;
            } else {
                #pragma unroll
                for (int e = 0; e < EACH; ++e)
                    if (r + e < m) STORE(cell[e], finish(sums[i + e][j]));
            }
        }
    }
}
