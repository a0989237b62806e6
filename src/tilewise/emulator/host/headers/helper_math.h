// Vectors of the CUDA samples' helper_math.h: arithmetic by component, dot, length, normalize, cross, clamp, lerp.
#define __VECTOR2(V, T) \
    __host__ __device__ V operator+(V a, V b) { return make_##V(a.x + b.x, a.y + b.y); } __host__ __device__ V operator-(V a, V b) { return make_##V(a.x - b.x, a.y - b.y); } \
    __host__ __device__ V operator*(V a, V b) { return make_##V(a.x * b.x, a.y * b.y); } __host__ __device__ V operator*(V a, T s) { return make_##V(a.x * s, a.y * s); } \
    __host__ __device__ V operator*(T s, V a) { return make_##V(a.x * s, a.y * s); } __host__ __device__ V operator/(V a, T s) { return make_##V(a.x / s, a.y / s); } \
    __host__ __device__ V operator/(V a, V b) { return make_##V(a.x / b.x, a.y / b.y); } __host__ __device__ V operator-(V a) { return make_##V(-a.x, -a.y); } \
    __host__ __device__ void operator+=(V& a, V b) { a.x += b.x; a.y += b.y; } __host__ __device__ void operator-=(V& a, V b) { a.x -= b.x; a.y -= b.y; } \
    __host__ __device__ void operator*=(V& a, T s) { a.x *= s; a.y *= s; } __host__ __device__ void operator/=(V& a, T s) { a.x /= s; a.y /= s; } \
    __host__ __device__ T dot(V a, V b) { return a.x * b.x + a.y * b.y; }
#define __VECTOR3(V, T) \
    __host__ __device__ V operator+(V a, V b) { return make_##V(a.x + b.x, a.y + b.y, a.z + b.z); } __host__ __device__ V operator-(V a, V b) { return make_##V(a.x - b.x, a.y - b.y, a.z - b.z); } \
    __host__ __device__ V operator*(V a, V b) { return make_##V(a.x * b.x, a.y * b.y, a.z * b.z); } __host__ __device__ V operator*(V a, T s) { return make_##V(a.x * s, a.y * s, a.z * s); } \
    __host__ __device__ V operator*(T s, V a) { return make_##V(a.x * s, a.y * s, a.z * s); } __host__ __device__ V operator/(V a, T s) { return make_##V(a.x / s, a.y / s, a.z / s); } \
    __host__ __device__ V operator/(V a, V b) { return make_##V(a.x / b.x, a.y / b.y, a.z / b.z); } __host__ __device__ V operator-(V a) { return make_##V(-a.x, -a.y, -a.z); } \
    __host__ __device__ void operator+=(V& a, V b) { a.x += b.x; a.y += b.y; a.z += b.z; } __host__ __device__ void operator-=(V& a, V b) { a.x -= b.x; a.y -= b.y; a.z -= b.z; } \
    __host__ __device__ void operator*=(V& a, T s) { a.x *= s; a.y *= s; a.z *= s; } __host__ __device__ void operator/=(V& a, T s) { a.x /= s; a.y /= s; a.z /= s; } \
    __host__ __device__ T dot(V a, V b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
#define __VECTOR4(V, T) \
    __host__ __device__ V operator+(V a, V b) { return make_##V(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); } __host__ __device__ V operator-(V a, V b) { return make_##V(a.x - b.x, a.y - b.y, a.z - b.z, a.w - b.w); } \
    __host__ __device__ V operator*(V a, V b) { return make_##V(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w); } __host__ __device__ V operator*(V a, T s) { return make_##V(a.x * s, a.y * s, a.z * s, a.w * s); } \
    __host__ __device__ V operator*(T s, V a) { return make_##V(a.x * s, a.y * s, a.z * s, a.w * s); } __host__ __device__ V operator/(V a, T s) { return make_##V(a.x / s, a.y / s, a.z / s, a.w / s); } \
    __host__ __device__ V operator/(V a, V b) { return make_##V(a.x / b.x, a.y / b.y, a.z / b.z, a.w / b.w); } __host__ __device__ V operator-(V a) { return make_##V(-a.x, -a.y, -a.z, -a.w); } \
    __host__ __device__ void operator+=(V& a, V b) { a.x += b.x; a.y += b.y; a.z += b.z; a.w += b.w; } __host__ __device__ void operator-=(V& a, V b) { a.x -= b.x; a.y -= b.y; a.z -= b.z; a.w -= b.w; } \
    __host__ __device__ void operator*=(V& a, T s) { a.x *= s; a.y *= s; a.z *= s; a.w *= s; } __host__ __device__ void operator/=(V& a, T s) { a.x /= s; a.y /= s; a.z /= s; a.w /= s; } \
    __host__ __device__ T dot(V a, V b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
__VECTOR2(float2, float) __VECTOR3(float3, float) __VECTOR4(float4, float) __VECTOR2(int2, int) __VECTOR3(int3, int) __VECTOR4(int4, int)
__host__ __device__ float2 make_float2(float s) { return make_float2(s, s); }
__host__ __device__ float3 make_float3(float s) { return make_float3(s, s, s); }
__host__ __device__ float4 make_float4(float s) { return make_float4(s, s, s, s); }
__host__ __device__ float3 make_float3(float4 a) { return make_float3(a.x, a.y, a.z); }
__host__ __device__ float4 make_float4(float3 a, float w) { return make_float4(a.x, a.y, a.z, w); }
__host__ __device__ float length(float2 v) { return sqrtf(dot(v, v)); }
__host__ __device__ float length(float3 v) { return sqrtf(dot(v, v)); }
__host__ __device__ float length(float4 v) { return sqrtf(dot(v, v)); }
__host__ __device__ float2 normalize(float2 v) { return v * (1.0f / sqrtf(dot(v, v))); }
__host__ __device__ float3 normalize(float3 v) { return v * (1.0f / sqrtf(dot(v, v))); }
__host__ __device__ float4 normalize(float4 v) { return v * (1.0f / sqrtf(dot(v, v))); }
__host__ __device__ float3 cross(float3 a, float3 b) { return make_float3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x); }
__host__ __device__ float3 reflect(float3 i, float3 n) { return i - 2.0f * n * dot(n, i); }
__host__ __device__ float lerp(float a, float b, float t) { return a + t * (b - a); }
__host__ __device__ float3 lerp(float3 a, float3 b, float t) { return a + (b - a) * t; }
__host__ __device__ float clamp(float x, float a, float b) { return fmaxf(a, fminf(x, b)); }
__host__ __device__ int clamp(int x, int a, int b) { return max(a, min(x, b)); }
__host__ __device__ float3 clamp(float3 v, float a, float b) { return make_float3(clamp(v.x, a, b), clamp(v.y, a, b), clamp(v.z, a, b)); }
