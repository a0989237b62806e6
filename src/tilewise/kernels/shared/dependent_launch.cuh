// dependent_launch: kernels of one product that follow each other on Hopper without waiting for the last block of the one before.
// Each lets the next one start as soon as all its blocks have; what needs the results of the one before waits for them.

static __device__ __forceinline__ void let_next_kernel_start()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// The kernel before is done, and its results are there. Of a kernel that needs none of them one block waits all the same,
// at its end: so none is ever done before the one before it is.
static __device__ __forceinline__ void wait_for_kernel_before()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

