// dependent_launch: programmatic dependent launch (Hopper): the blocks of the next kernel start while the last ones of this run.

static __device__ __forceinline__ void launch_dependent_grids()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Waits until the kernel before has completed and its results are visible. A kernel that reads none of them waits too, in one
// block and at its end: so that kernels complete in order.
static __device__ __forceinline__ void wait_on_dependent_grids()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

