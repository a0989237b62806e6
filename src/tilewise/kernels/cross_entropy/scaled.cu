// A gradient times one number on the card: in place, and not touched where that is 1; or from sums in float32, rounded.

template <class Source> static __device__ __forceinline__ void
times(const Source* from, Element* to, float factor, long long count) {
    const long long words = count / LANES, first = (long long)blockIdx.x * THREADS + threadIdx.x;
    #pragma unroll 2
    for (long long w = first; w < words; w += (long long)gridDim.x * THREADS) {
        __align__(16) Source read[LANES];
        #pragma unroll
        for (int i = 0; i < int(LANES * sizeof(Source) / 16); ++i)
            reinterpret_cast<uint4*>(read)[i] = reinterpret_cast<const uint4*>(from + w * LANES)[i];
        float made[LANES];
        #pragma unroll
        for (int i = 0; i < LANES; ++i) made[i] = wide(read[i]) * factor;
        uint4 word;
        word.x = packed(made), word.y = packed(made + LANES / 4);
        word.z = packed(made + LANES / 2), word.w = packed(made + LANES / 4 * 3);
        reinterpret_cast<uint4*>(to)[w] = word;
    }
    for (long long j = words * LANES + first; j < count; j += (long long)gridDim.x * THREADS)
        to[j] = narrow(wide(from[j]) * factor);
}

extern "C" __global__ void __launch_bounds__(THREADS) scaled(Element* gradient, const float* by, long long count) {
    const float factor = *by;
    if (factor != 1.0f) times(gradient, gradient, factor, count);
}

extern "C" __global__ void __launch_bounds__(THREADS) rounded(const float* sums, Element* gradient, long long count) {
    times(sums, gradient, 1.0f, count);
}
