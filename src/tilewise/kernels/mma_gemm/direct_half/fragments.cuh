// fragments: four 8 x 8 matrices of 2-byte elements from shared memory, whose lines' addresses the lanes of a warp hold.

template <bool TRANSPOSED>
static __device__ __forceinline__ void read_matrices(
    const unsigned char* line, unsigned& a, unsigned& b, unsigned& c, unsigned& d)
{
    unsigned at = (unsigned)__cvta_generic_to_shared(line);
    if (TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(at) : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(at) : "memory");
}
