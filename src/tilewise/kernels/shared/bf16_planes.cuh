// bf16_planes: float32 as the sum of three bfloat16 numbers: rounding to them, and when their products are safe.

// Two floats rounded to bfloat16, `low` in the lower half.
static __device__ __forceinline__ unsigned pair_of(float low, float high) {
    unsigned pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

// Whether no plane overflows and none that matters underflows, by the largest magnitudes of both operands as bits; `log_k`: log2 of
//   k, rounded up. Unsafe are Inf and NaN, sums that may pass 2^127, and a largest element below 2^-90 or a product of both largest
//   below 2^-80: then what is lost below the least bfloat16 (2^-133) would count. A zero operand is safe beside any finite one.
static __device__ __forceinline__ bool safe(unsigned m, unsigned n, int log_k) {
    int of_m = (int)(m >> 23) - 127, of_n = (int)(n >> 23) - 127;
    if (of_m == 128 || of_n == 128) return false;
    if (m == 0 || n == 0) return true;
    return of_m + of_n + 2 + log_k <= 127 && of_m >= -90 && of_n >= -90 && of_m + of_n >= -80;
}
