// skinny: shared by few_rows and few_dots. A is the operand with few rows (FEW x k, any strides), B the long one, which is read once
// from global memory; P is FEW x length with any strides. With SWAPPED, for few columns, A is N and B is M, both transposed.

#define WARPS 8
#define SPACE (16 / (int)sizeof(Element))  // rows of A in shared memory: aligned to 16 bytes, no bank conflicts

struct __align__(VECTOR * sizeof(Element)) Vector { Element lane[VECTOR]; };

// kk and row of the i-th element of a stage of A, in memory order, along k or across. Elements outside never reach P.
struct InA {
    int kk, r;
    __device__ __forceinline__ InA(int i, bool along_k)
        : kk(along_k ? i % STAGE : i / FEW), r(along_k ? i / STAGE : i % FEW) {}
    __device__ __forceinline__ Element of(const Element* A, int rows, long long a_row, long long a_k, int stage, int stop)
    {
        return r < rows && stage + kk < stop ? A[r * a_row + (stage + kk) * a_k] : Element();
    }
};

static __device__ __forceinline__ bool lies_along_k(long long a_row, long long a_k) { return llabs(a_k) <= llabs(a_row); }

// Copies an element of A to shared memory; asynchronously where cp.async exists and elements have 4 bytes or more.
static __device__ __forceinline__ void copy_element(Element* to, const Element* from)
{
#if __CUDA_ARCH__ >= 800
    if constexpr (sizeof(Element) >= 4) {
        unsigned there = (unsigned)__cvta_generic_to_shared(to);
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" :: "r"(there), "l"(from), "n"(sizeof(Element)) : "memory");
        return;
    }
#endif
    *to = *from;
}

static __device__ __forceinline__ void wait_for_copies()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// Waits for the kernel before, unless `k_each` is negative: that kernel is of the same product and writes nothing that is read here, so
// the wait is at the end. Returns whether it is.
static __device__ __forceinline__ bool begin_with_wait(int& k_each)
{
    bool waits_late = k_each < 0;
    k_each = waits_late ? -k_each : k_each;
    if (!waits_late) wait_on_dependent_grids();
    launch_dependent_grids();
    return waits_late;
}

// adds the product of an element of A and one of B
static __device__ __forceinline__ void step_on(Sum& sum, Element a, Element b, int at)
{
    if (SWAPPED) step(sum, b, a, at);
    else step(sum, a, b, at);
}

// Stores a cell of P, or, with plane > 0, of this piece of k's plane of partial sums; `plane`: cells of a plane.
static __device__ __forceinline__ void store_sum(Result* P, long long at, Partial value, long long plane)
{
    if (plane) reinterpret_cast<Partial*>(P)[blockIdx.z * plane + at] = value;
    else STORE(P[at], value);
}
