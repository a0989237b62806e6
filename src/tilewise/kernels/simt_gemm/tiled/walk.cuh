// walk: the tile of a number: bands of GROUP rows of tiles, column by column within a band, for reuse in L2.

static __device__ __forceinline__ int tiles_of(int m, int n)
{
    return ((m + BLOCK_M - 1) / BLOCK_M) * ((n + BLOCK_N - 1) / BLOCK_N);
}

struct Corner {
    int top, left;
    __device__ __forceinline__ Corner(int number, int m, int n)
    {
        int tiles_m = (m + BLOCK_M - 1) / BLOCK_M, tiles_n = (n + BLOCK_N - 1) / BLOCK_N;
        int band = number / (GROUP * tiles_n), within = number % (GROUP * tiles_n);
        int high = min(GROUP, tiles_m - band * GROUP);
        top = (band * GROUP + within % high) * BLOCK_M;
        left = within / high * BLOCK_N;
    }
};

