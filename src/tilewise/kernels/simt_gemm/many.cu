// many: unrelated products over one algebra in one launch; 64 x 64 of one P a block.
//
// Layout: any strides. The jobs are launch parameters, so nothing is copied before it; a job's blocks begin at `first`.
// Tiles: see tile.cuh.

struct Job {
    const Element* M; const Element* N; Result* P;
    long long m_row, m_col, n_row, n_col, p_row, p_col;
    int m, k, n, first;
};
struct Jobs { Job of[JOBS]; };

static __device__ __forceinline__ long long apart(long long step) { return step < 0 ? -step : step; }

extern "C" __global__ void __launch_bounds__(256) many(const __grid_constant__ Jobs jobs, int count)
{
    int low = 0, high = count - 1;  // the last job whose blocks begin here or before
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (jobs.of[middle].first <= (int)blockIdx.x) low = middle; else high = middle - 1;
    }
    const Job& job = jobs.of[low];
    int across = (job.n + SIDE - 1) / SIDE, tile = blockIdx.x - job.first;
    bool along_m = apart(job.m_col) <= apart(job.m_row), along_n = apart(job.n_row) < apart(job.n_col);
    make_tile(job.M, job.N, job.P, tile / across * SIDE, job.m, tile % across * SIDE, job.n, 0, job.k, along_m, along_n,
              job.m_row, job.m_col, job.n_row, job.n_col, job.p_row, job.p_col);
}
