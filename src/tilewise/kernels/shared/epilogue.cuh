// epilogue: P = activation(alpha * sum + held + bias), applied to a sum before it is stored.
//
// `held` is P's value before the product with ACCUMULATE, else 0. Computed in the type of the sums.

struct Epilogue { Sum alpha; const Bias* bias; };

// 1 / (1 + exp(-x)); for float32 by approximate instructions
static __device__ __forceinline__ Sum sigmoid(Sum x) {
#if DOUBLE
    return 1 / (1 + exp(-x));
#else
    float power, made;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x * -1.44269504089f));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(made) : "f"(1.0f + power));
    return made;
#endif
}

// The normal distribution's phi(x) = (1 + erf(x / sqrt(2))) / 2. In float32 by Hastings's approximation, within 1.5e-7.
static __device__ __forceinline__ Sum normal_below(Sum x) {
#if DOUBLE
    return (1 + erf(x * 0.70710678118654752440)) / 2;
#else
    float t, power;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(t) : "f"(1.0f + 0.231641888f * fabsf(x)));
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x * x * -0.72134752044f));
    float tail = t * (0.127414796f + t * (-0.142248368f + t * (0.7107068705f + t * (-0.7265760135f + t * 0.5307027145f))));
    tail *= power;
    return x < 0 ? tail : 1.0f - tail;
#endif
}

static __device__ __forceinline__ Sum activated(Sum x) {
#if ACTIVATION == RELU
    return x < 0 ? 0 : x;  // NaN stays
#elif ACTIVATION == GELU
    return x * normal_below(x);
#elif ACTIVATION == GELU_TANH
    return x * sigmoid((Sum)1.59576912160573071176 * (x + (Sum)0.044715 * x * x * x));  // (1 + tanh(y)) / 2 = sigmoid(2y)
#elif ACTIVATION == SILU
    return x * sigmoid(x);
#else
    return x;
#endif
}

// The bias of a column of P, 0 outside P.
static __device__ __forceinline__ Sum bias_of(const Epilogue& epilogue, int column, bool inside) {
#if BIAS
    return inside ? widen_bias(epilogue.bias[column]) : (Sum)0;
#else
    return 0;
#endif
}

static __device__ __forceinline__ Sum finish(Sum sum, Sum held, Sum bias, const Epilogue& epilogue) {
#if ALPHA
    sum *= epilogue.alpha;
#endif
#if ACCUMULATE
    sum += held;
#endif
#if BIAS
    sum += bias;
#endif
    return activated(sum);
}
