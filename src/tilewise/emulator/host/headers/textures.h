// CUDA arrays, textures (references and objects) and surfaces, by the programming guide: addressing modes, point
// and linear filtering with fractions of 8 bits, integers read as fractions.
enum cudaChannelFormatKind { cudaChannelFormatKindSigned = 0, cudaChannelFormatKindUnsigned = 1, cudaChannelFormatKindFloat = 2, cudaChannelFormatKindNone = 3 };
enum cudaTextureReadMode { cudaReadModeElementType = 0, cudaReadModeNormalizedFloat = 1 };
enum cudaTextureFilterMode { cudaFilterModePoint = 0, cudaFilterModeLinear = 1 };
enum cudaTextureAddressMode { cudaAddressModeWrap = 0, cudaAddressModeClamp = 1, cudaAddressModeMirror = 2, cudaAddressModeBorder = 3 };
enum cudaResourceType { cudaResourceTypeArray = 0, cudaResourceTypeMipmappedArray = 1, cudaResourceTypeLinear = 2, cudaResourceTypePitch2D = 3 };
#define cudaTextureType1D 1
#define cudaTextureType2D 2
#define cudaTextureType3D 3
#define cudaSurfaceType2D 2
#define cudaArrayDefault 0
#define cudaArrayLayered 1
#define cudaArraySurfaceLoadStore 2
#define cudaBoundaryModeZero 0
#define cudaBoundaryModeClamp 1
#define cudaBoundaryModeTrap 2
typedef int cudaSurfaceBoundaryMode;
struct cudaChannelFormatDesc { int x, y, z, w; cudaChannelFormatKind f; };
cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind f) { cudaChannelFormatDesc d; d.x = x; d.y = y; d.z = z; d.w = w; d.f = f; return d; }
template <class T> struct __channel { static cudaChannelFormatDesc of() { return cudaCreateChannelDesc(8 * sizeof(T), 0, 0, 0, cudaChannelFormatKindUnsigned); } };
#define __CHANNEL(T, x, y, z, w, kind) template <> struct __channel<T> { static cudaChannelFormatDesc of() { return cudaCreateChannelDesc(x, y, z, w, kind); } };
#define __CHANNELS(T, v, bits, kind) __CHANNEL(T, bits, 0, 0, 0, kind) __CHANNEL(v##1, bits, 0, 0, 0, kind) __CHANNEL(v##2, bits, bits, 0, 0, kind) __CHANNEL(v##4, bits, bits, bits, bits, kind)
__CHANNELS(float, float, 32, cudaChannelFormatKindFloat) __CHANNELS(int, int, 32, cudaChannelFormatKindSigned)
__CHANNELS(unsigned int, uint, 32, cudaChannelFormatKindUnsigned) __CHANNELS(short, short, 16, cudaChannelFormatKindSigned)
__CHANNELS(unsigned short, ushort, 16, cudaChannelFormatKindUnsigned) __CHANNELS(unsigned char, uchar, 8, cudaChannelFormatKindUnsigned)
__CHANNELS(signed char, char, 8, cudaChannelFormatKindSigned) __CHANNEL(char, 8, 0, 0, 0, cudaChannelFormatKindSigned)
template <class T> cudaChannelFormatDesc cudaCreateChannelDesc() { return __channel<T>::of(); }

// -- arrays
struct cudaArray { unsigned char* __data; size_t __width, __height, __depth, __row; cudaChannelFormatDesc __desc; };
typedef cudaArray* cudaArray_t;
typedef const cudaArray* cudaArray_const_t;
struct cudaPitchedPtr { void* ptr; size_t pitch, xsize, ysize; };
struct cudaPos { size_t x, y, z; };
cudaExtent make_cudaExtent(size_t w, size_t h, size_t d) { cudaExtent e; e.width = w; e.height = h; e.depth = d; return e; }
cudaPos make_cudaPos(size_t x, size_t y, size_t z) { cudaPos p; p.x = x; p.y = y; p.z = z; return p; }
cudaPitchedPtr make_cudaPitchedPtr(void* p, size_t pitch, size_t x, size_t y) { cudaPitchedPtr q; q.ptr = p; q.pitch = pitch; q.xsize = x; q.ysize = y; return q; }
struct cudaMemcpy3DParms { cudaArray_t srcArray; cudaPos srcPos; cudaPitchedPtr srcPtr; cudaArray_t dstArray; cudaPos dstPos; cudaPitchedPtr dstPtr; cudaExtent extent; cudaMemcpyKind kind; };
void* __vector_memory(size_t size);
void __vector_size(void* p, size_t before, size_t size);
void __vector_free(void* p);
void* __thrust_memory(size_t size);
void __thrust_copy(void* to, const void* from, size_t size);
size_t __element(const cudaChannelFormatDesc& d) { return (d.x + d.y + d.z + d.w) / 8; }
cudaError_t cudaMalloc3DArray(cudaArray_t* a, const cudaChannelFormatDesc* d, cudaExtent e, unsigned int flags = 0) {
    size_t h = e.height ? e.height : 1, n = e.depth ? e.depth : 1;
    cudaArray* made = (cudaArray*)__vector_memory(sizeof(cudaArray));
    __vector_size(made, 0, sizeof(cudaArray));
    made->__width = e.width; made->__height = h; made->__depth = n; made->__desc = *d; made->__row = e.width * __element(*d); made->__data = 0;
    *a = made;
    return __cuda_malloc((void**)&made->__data, made->__row * h * n, 0);
}
cudaError_t cudaMallocArray(cudaArray_t* a, const cudaChannelFormatDesc* d, size_t w, size_t h = 0, unsigned int flags = 0) { return cudaMalloc3DArray(a, d, make_cudaExtent(w, h, 0), flags); }
cudaError_t cudaFreeArray(cudaArray_t a) { if (!a) return cudaSuccess; cudaError_t e = __cuda_free(a->__data, 0); __vector_free(a); return e; }
cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* d, cudaArray_const_t a) { *d = a->__desc; return cudaSuccess; }
cudaError_t cudaMemcpyToArray(cudaArray_t a, size_t x, size_t y, const void* from, size_t size, cudaMemcpyKind kind) { return __cuda_copy(a->__data + y * a->__row + x, from, size, kind, 0); }
cudaError_t cudaMemcpyFromArray(void* to, cudaArray_const_t a, size_t x, size_t y, size_t size, cudaMemcpyKind kind) { return __cuda_copy(to, a->__data + y * a->__row + x, size, kind, 0); }
cudaError_t cudaMemcpyToArrayAsync(cudaArray_t a, size_t x, size_t y, const void* from, size_t size, cudaMemcpyKind kind, cudaStream_t s = 0) { return cudaMemcpyToArray(a, x, y, from, size, kind); }
cudaError_t cudaMemcpy2DToArray(cudaArray_t a, size_t x, size_t y, const void* from, size_t pitch, size_t w, size_t h, cudaMemcpyKind kind) { return __cuda_copy2d(a->__data + y * a->__row + x, a->__row, from, pitch, w, h, kind); }
cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t a, size_t x, size_t y, const void* from, size_t pitch, size_t w, size_t h, cudaMemcpyKind kind, cudaStream_t s = 0) { return cudaMemcpy2DToArray(a, x, y, from, pitch, w, h, kind); }
cudaError_t cudaMemcpy2DFromArray(void* to, size_t pitch, cudaArray_const_t a, size_t x, size_t y, size_t w, size_t h, cudaMemcpyKind kind) { return __cuda_copy2d(to, pitch, a->__data + y * a->__row + x, a->__row, w, h, kind); }
cudaError_t cudaMalloc3D(cudaPitchedPtr* p, cudaExtent e) { p->xsize = e.width; p->ysize = e.height; return __cuda_malloc_pitch(&p->ptr, &p->pitch, e.width, e.height * e.depth); }
cudaError_t cudaMemset3D(cudaPitchedPtr p, int value, cudaExtent e) {
    cudaError_t r = cudaSuccess;
    for (size_t z = 0; z < e.depth && r == cudaSuccess; ++z) r = __cuda_set2d((char*)p.ptr + z * p.pitch * p.ysize, p.pitch, value, e.width, e.height);
    return r;
}
cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* p) {
    size_t in = p->srcArray ? __element(p->srcArray->__desc) : p->dstArray ? __element(p->dstArray->__desc) : 1;
    size_t from_row = p->srcArray ? p->srcArray->__row : p->srcPtr.pitch, to_row = p->dstArray ? p->dstArray->__row : p->dstPtr.pitch;
    size_t from_rows = p->srcArray ? p->srcArray->__height : p->srcPtr.ysize, to_rows = p->dstArray ? p->dstArray->__height : p->dstPtr.ysize;
    char* from = p->srcArray ? (char*)p->srcArray->__data : (char*)p->srcPtr.ptr; char* to = p->dstArray ? (char*)p->dstArray->__data : (char*)p->dstPtr.ptr;
    from += p->srcPos.x * (p->srcArray ? in : 1) + p->srcPos.y * from_row + p->srcPos.z * from_row * from_rows;
    to += p->dstPos.x * (p->dstArray ? in : 1) + p->dstPos.y * to_row + p->dstPos.z * to_row * to_rows;
    cudaError_t r = cudaSuccess;
    for (size_t z = 0; z < p->extent.depth && r == cudaSuccess; ++z)
        r = __cuda_copy2d(to + z * to_row * to_rows, to_row, from + z * from_row * from_rows, from_row, p->extent.width * in, p->extent.height, p->kind);
    return r;
}

// -- parameters of a fetch
struct __sampler { const unsigned char* data; long width, height, depth, row; int address[3]; int linear, unit, fraction, bits, sign; float border[4]; };
template <class T, int mode> struct __fetched { typedef T type; };
#define __FETCHED(T, R) template <> struct __fetched<T, 1> { typedef R type; };
__FETCHED(unsigned char, float) __FETCHED(char, float) __FETCHED(signed char, float) __FETCHED(unsigned short, float) __FETCHED(short, float)
__FETCHED(uchar1, float1) __FETCHED(uchar2, float2) __FETCHED(uchar4, float4) __FETCHED(char4, float4) __FETCHED(ushort4, float4) __FETCHED(short4, float4)
__device__ float __part(const __sampler& t, const unsigned char* p, int i) {
    if (t.bits == 8) { if (!t.sign) return p[i] / 255.0f; float v = ((const signed char*)p)[i] / 127.0f; return v < -1.0f ? -1.0f : v; }
    if (!t.sign) return ((const unsigned short*)p)[i] / 65535.0f;
    float v = ((const short*)p)[i] / 32767.0f; return v < -1.0f ? -1.0f : v;
}
template <class T> __device__ void __texel(const __sampler& t, const unsigned char* p, T* to) { *to = *(const T*)p; }
__device__ void __texel(const __sampler& t, const unsigned char* p, float* to) { *to = t.fraction ? __part(t, p, 0) : *(const float*)p; }
__device__ void __texel(const __sampler& t, const unsigned char* p, float1* to) { if (!t.fraction) { *to = *(const float1*)p; return; } to->x = __part(t, p, 0); }
__device__ void __texel(const __sampler& t, const unsigned char* p, float2* to) { if (!t.fraction) { *to = *(const float2*)p; return; } to->x = __part(t, p, 0); to->y = __part(t, p, 1); }
__device__ void __texel(const __sampler& t, const unsigned char* p, float4* to) { if (!t.fraction) { *to = *(const float4*)p; return; } to->x = __part(t, p, 0); to->y = __part(t, p, 1); to->z = __part(t, p, 2); to->w = __part(t, p, 3); }
template <class T> __device__ void __border(const __sampler& t, T* to) { unsigned char* b = (unsigned char*)to; for (int i = 0; i < (int)sizeof(T); ++i) b[i] = 0; }
__device__ void __border(const __sampler& t, float* to) { *to = t.border[0]; }
__device__ void __border(const __sampler& t, float2* to) { to->x = t.border[0]; to->y = t.border[1]; }
__device__ void __border(const __sampler& t, float4* to) { to->x = t.border[0]; to->y = t.border[1]; to->z = t.border[2]; to->w = t.border[3]; }
template <class T> __device__ T __mix(T a, T b, float t) { return a; }
__device__ float __mix(float a, float b, float t) { return (1.0f - t) * a + t * b; }
__device__ float1 __mix(float1 a, float1 b, float t) { float1 r; r.x = __mix(a.x, b.x, t); return r; }
__device__ float2 __mix(float2 a, float2 b, float t) { float2 r; r.x = __mix(a.x, b.x, t); r.y = __mix(a.y, b.y, t); return r; }
__device__ float4 __mix(float4 a, float4 b, float t) { float4 r; r.x = __mix(a.x, b.x, t); r.y = __mix(a.y, b.y, t); r.z = __mix(a.z, b.z, t); r.w = __mix(a.w, b.w, t); return r; }
// the cell of a coordinate; -1 for the border
__device__ long __cell(long i, long n, int mode, int unit) {
    if (i >= 0 && i < n) return i;
    if (mode == 3) return -1;
    if (mode == 0 && unit) { long r = i % n; return r < 0 ? r + n : r; }
    if (mode == 2 && unit) { long r = i % (2 * n); if (r < 0) r += 2 * n; return r < n ? r : 2 * n - 1 - r; }
    return i < 0 ? 0 : n - 1;
}
template <class R> __device__ R __cell_at(const __sampler& t, long x, long y, long z, int element) {
    R r;
    x = __cell(x, t.width, t.address[0], t.unit); y = __cell(y, t.height, t.address[1], t.unit); z = __cell(z, t.depth, t.address[2], t.unit);
    if (x < 0 || y < 0 || z < 0) __border(t, &r);
    else __texel(t, t.data + (z * t.height + y) * t.row + x * element, &r);
    return r;
}
__device__ float __fraction(float x) { return rintf((x - floorf(x)) * 256.0f) / 256.0f; }
template <class R> __device__ R __sample(const __sampler& t, float x, float y, float z, int dimensions, int element) {
    if (t.unit) { x *= t.width; y *= t.height; z *= t.depth; }
    if (!t.linear) return __cell_at<R>(t, (long)floorf(x), dimensions > 1 ? (long)floorf(y) : 0, dimensions > 2 ? (long)floorf(z) : 0, element);
    x -= 0.5f; y -= 0.5f; z -= 0.5f;
    long i = (long)floorf(x), j = dimensions > 1 ? (long)floorf(y) : 0, k = dimensions > 2 ? (long)floorf(z) : 0;
    R a = __mix(__cell_at<R>(t, i, j, k, element), __cell_at<R>(t, i + 1, j, k, element), __fraction(x));
    if (dimensions == 1) return a;
    R b = __mix(__cell_at<R>(t, i, j + 1, k, element), __cell_at<R>(t, i + 1, j + 1, k, element), __fraction(x));
    a = __mix(a, b, __fraction(y));
    if (dimensions == 2) return a;
    R c = __mix(__cell_at<R>(t, i, j, k + 1, element), __cell_at<R>(t, i + 1, j, k + 1, element), __fraction(x));
    R d = __mix(__cell_at<R>(t, i, j + 1, k + 1, element), __cell_at<R>(t, i + 1, j + 1, k + 1, element), __fraction(x));
    return __mix(a, __mix(c, d, __fraction(y)), __fraction(z));
}
template <class R> __device__ R __fetch(const __sampler& t, long i, int element) { R r; if (i < 0 || i >= t.width) __border(t, &r); else __texel(t, t.data + i * element, &r); return r; }
void __bound(__sampler* s, const void* p, const cudaChannelFormatDesc& d, long w, long h, long n, long row) {
    s->data = (const unsigned char*)p; s->width = w; s->height = h; s->depth = n; s->row = row; s->bits = d.x; s->sign = d.f == cudaChannelFormatKindSigned;
}

// -- references
template <class T, int dimensions = 1, int mode = 0> struct texture {
    int normalized; cudaTextureFilterMode filterMode; cudaTextureAddressMode addressMode[3]; cudaChannelFormatDesc channelDesc; int sRGB; unsigned int maxAnisotropy;
    __sampler __s;
};
template <class T, int D, int M> cudaError_t cudaBindTexture(size_t* offset, texture<T, D, M>& t, const void* p, const cudaChannelFormatDesc& d, size_t size = 4294967295UL) {
    if (offset) *offset = 0;
    __bound(&t.__s, p, d, size / __element(d), 1, 1, size); return cudaSuccess;
}
template <class T, int D, int M> cudaError_t cudaBindTexture(size_t* offset, texture<T, D, M>& t, const void* p, size_t size = 4294967295UL) { return cudaBindTexture(offset, t, p, __channel<T>::of(), size); }
template <class T, int D, int M> cudaError_t cudaBindTexture2D(size_t* offset, texture<T, D, M>& t, const void* p, const cudaChannelFormatDesc& d, size_t w, size_t h, size_t pitch) {
    if (offset) *offset = 0;
    __bound(&t.__s, p, d, w, h, 1, pitch); return cudaSuccess;
}
template <class T, int D, int M> cudaError_t cudaBindTexture2D(size_t* offset, texture<T, D, M>& t, const void* p, size_t w, size_t h, size_t pitch) { return cudaBindTexture2D(offset, t, p, __channel<T>::of(), w, h, pitch); }
template <class T, int D, int M> cudaError_t cudaBindTextureToArray(texture<T, D, M>& t, cudaArray_const_t a, const cudaChannelFormatDesc& d) { __bound(&t.__s, a->__data, d, a->__width, a->__height, a->__depth, a->__row); return cudaSuccess; }
template <class T, int D, int M> cudaError_t cudaBindTextureToArray(texture<T, D, M>& t, cudaArray_const_t a) { return cudaBindTextureToArray(t, a, a->__desc); }
template <class T, int D, int M> cudaError_t cudaUnbindTexture(texture<T, D, M>& t) { t.__s.data = 0; return cudaSuccess; }
template <class T, int D, int M> __device__ __sampler __sampler_of(texture<T, D, M>& t) {
    __sampler s = t.__s; s.linear = t.filterMode == cudaFilterModeLinear; s.unit = t.normalized; s.fraction = M;
    for (int i = 0; i < 3; ++i) s.address[i] = t.addressMode[i];
    for (int i = 0; i < 4; ++i) s.border[i] = 0.0f;
    return s;
}
template <class T, int D, int M> __device__ typename __fetched<T, M>::type tex1Dfetch(texture<T, D, M>& t, int i) { return __fetch<typename __fetched<T, M>::type>(__sampler_of(t), i, sizeof(T)); }
template <class T, int D, int M> __device__ typename __fetched<T, M>::type tex1D(texture<T, D, M>& t, float x) { return __sample<typename __fetched<T, M>::type>(__sampler_of(t), x, 0.0f, 0.0f, 1, sizeof(T)); }
template <class T, int D, int M> __device__ typename __fetched<T, M>::type tex2D(texture<T, D, M>& t, float x, float y) { return __sample<typename __fetched<T, M>::type>(__sampler_of(t), x, y, 0.0f, 2, sizeof(T)); }
template <class T, int D, int M> __device__ typename __fetched<T, M>::type tex3D(texture<T, D, M>& t, float x, float y, float z) { return __sample<typename __fetched<T, M>::type>(__sampler_of(t), x, y, z, 3, sizeof(T)); }

// -- objects
typedef unsigned long long cudaTextureObject_t;
typedef unsigned long long cudaSurfaceObject_t;
struct __resource_array { cudaArray_t array; };
struct __resource_linear { void* devPtr; cudaChannelFormatDesc desc; size_t sizeInBytes; };
struct __resource_pitch { void* devPtr; cudaChannelFormatDesc desc; size_t width, height, pitchInBytes; };
struct __resource { __resource_array array; __resource_linear linear; __resource_pitch pitch2D; };
struct cudaResourceDesc { cudaResourceType resType; __resource res; unsigned int flags; };
struct cudaTextureDesc { cudaTextureAddressMode addressMode[3]; cudaTextureFilterMode filterMode; cudaTextureReadMode readMode; int sRGB; float borderColor[4]; int normalizedCoords; unsigned int maxAnisotropy; };
struct cudaResourceViewDesc { int format; };
struct __object { __sampler s; int element; };
cudaError_t __object_of(unsigned long long* o, const cudaResourceDesc* r, const cudaTextureDesc* t) {
    __object made; memset(&made, 0, sizeof(__object));
    if (r->resType == cudaResourceTypeArray) { const cudaArray* a = r->res.array.array; made.element = __element(a->__desc); __bound(&made.s, a->__data, a->__desc, a->__width, a->__height, a->__depth, a->__row); }
    else if (r->resType == cudaResourceTypeLinear) { made.element = __element(r->res.linear.desc); __bound(&made.s, r->res.linear.devPtr, r->res.linear.desc, r->res.linear.sizeInBytes / made.element, 1, 1, r->res.linear.sizeInBytes); }
    else if (r->resType == cudaResourceTypePitch2D) { made.element = __element(r->res.pitch2D.desc); __bound(&made.s, r->res.pitch2D.devPtr, r->res.pitch2D.desc, r->res.pitch2D.width, r->res.pitch2D.height, 1, r->res.pitch2D.pitchInBytes); }
    else return cudaErrorInvalidValue;
    if (t) {
        made.s.linear = t->filterMode == cudaFilterModeLinear; made.s.unit = t->normalizedCoords; made.s.fraction = t->readMode == cudaReadModeNormalizedFloat;
        for (int i = 0; i < 3; ++i) made.s.address[i] = t->addressMode[i];
        for (int i = 0; i < 4; ++i) made.s.border[i] = t->borderColor[i];
    }
    void* there = __thrust_memory(sizeof(__object));
    __thrust_copy(there, &made, sizeof(__object));
    *o = (unsigned long long)there;
    return cudaSuccess;
}
cudaError_t cudaCreateTextureObject(cudaTextureObject_t* o, const cudaResourceDesc* r, const cudaTextureDesc* t, const cudaResourceViewDesc* v) { return __object_of(o, r, t); }
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t o) { __vector_free((void*)o); return cudaSuccess; }
cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* o, const cudaResourceDesc* r) { return __object_of(o, r, 0); }
cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t o) { __vector_free((void*)o); return cudaSuccess; }
template <class T> __device__ T tex1Dfetch(cudaTextureObject_t o, int i) { const __object* t = (const __object*)o; return __fetch<T>(t->s, i, t->element); }
template <class T> __device__ T tex1D(cudaTextureObject_t o, float x) { const __object* t = (const __object*)o; return __sample<T>(t->s, x, 0.0f, 0.0f, 1, t->element); }
template <class T> __device__ T tex2D(cudaTextureObject_t o, float x, float y) { const __object* t = (const __object*)o; return __sample<T>(t->s, x, y, 0.0f, 2, t->element); }
template <class T> __device__ T tex3D(cudaTextureObject_t o, float x, float y, float z) { const __object* t = (const __object*)o; return __sample<T>(t->s, x, y, z, 3, t->element); }
template <class T> __device__ void surf2Dwrite(T v, cudaSurfaceObject_t o, int x, int y, int mode = 0) { const __object* t = (const __object*)o; if (x >= 0 && y >= 0 && x < t->s.row && y < t->s.height) *(T*)(t->s.data + y * t->s.row + x) = v; }
template <class T> __device__ void surf2Dread(T* v, cudaSurfaceObject_t o, int x, int y, int mode = 0) { const __object* t = (const __object*)o; *v = *(const T*)(t->s.data + y * t->s.row + x); }
template <class T> __device__ T surf2Dread(cudaSurfaceObject_t o, int x, int y, int mode = 0) { const __object* t = (const __object*)o; return *(const T*)(t->s.data + y * t->s.row + x); }
