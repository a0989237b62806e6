// cluster: a block's rank, the cluster's barrier, and addresses in another block's shared memory. Before Hopper a cluster is one block.

static __device__ __forceinline__ int cluster_blocks() {
    unsigned blocks = 1;
#if __CUDA_ARCH__ >= 900
    asm volatile("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(blocks));
#endif
    return (int)blocks;
}

static __device__ __forceinline__ unsigned cluster_rank() {
    unsigned rank = 0;
#if __CUDA_ARCH__ >= 900
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
    return rank;
}

static __device__ __forceinline__ void cluster_sync() {
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
#endif
}

// The address of the same variable in the shared memory of another block of the cluster.
template <typename Value> static __device__ __forceinline__ const Value* shared_of_block(const Value* here, int rank) {
#if __CUDA_ARCH__ >= 900
    unsigned long long there;
    asm volatile("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(here), "r"(rank));
    return (const Value*)there;
#else
    return here;
#endif
}
