// The CUDA runtime API. Functions without a body are implemented by the emulator's runtime.
#define __DRIVER_TYPES_H__
#define __CUDA_RUNTIME_H__
#define CUDART_VERSION 12040
#define __CUDART_API_VERSION 12040
#define CUDART_PI_F 3.141592654f
#define CUDART_INF_F (__builtin_inff())
#define CUDART_INF (__builtin_inf())
#define CUDART_NAN_F (__builtin_nanf())
#define CUDART_NAN ((double)__builtin_nanf())
#define CUDART_PI 3.1415926535897931
#define CUDART_MAX_NORMAL_F 3.402823466e+38f
#define CUDA_VERSION 12040
typedef enum cudaError {
    cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2, cudaErrorInitializationError = 3,
    cudaErrorCudartUnloading = 4, cudaErrorInvalidConfiguration = 9, cudaErrorInvalidPitchValue = 12,
    cudaErrorInvalidSymbol = 13, cudaErrorInvalidHostPointer = 16, cudaErrorInvalidDevicePointer = 17,
    cudaErrorInvalidTexture = 18, cudaErrorInvalidTextureBinding = 19, cudaErrorInvalidChannelDescriptor = 20,
    cudaErrorInvalidMemcpyDirection = 21, cudaErrorInsufficientDriver = 35, cudaErrorDevicesUnavailable = 46,
    cudaErrorMissingConfiguration = 52, cudaErrorInvalidDeviceFunction = 98, cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101, cudaErrorInvalidKernelImage = 200, cudaErrorNoKernelImageForDevice = 209,
    cudaErrorECCUncorrectable = 214, cudaErrorUnsupportedLimit = 215, cudaErrorPeerAccessUnsupported = 217,
    cudaErrorInvalidPtx = 218, cudaErrorFileNotFound = 301, cudaErrorOperatingSystem = 304,
    cudaErrorInvalidResourceHandle = 400, cudaErrorSymbolNotFound = 500, cudaErrorNotReady = 600,
    cudaErrorIllegalAddress = 700, cudaErrorLaunchOutOfResources = 701, cudaErrorLaunchTimeout = 702,
    cudaErrorPeerAccessAlreadyEnabled = 704, cudaErrorPeerAccessNotEnabled = 705, cudaErrorAssert = 710,
    cudaErrorHostMemoryAlreadyRegistered = 712, cudaErrorHostMemoryNotRegistered = 713,
    cudaErrorHardwareStackError = 714, cudaErrorIllegalInstruction = 715, cudaErrorMisalignedAddress = 716,
    cudaErrorInvalidAddressSpace = 717, cudaErrorInvalidPc = 718, cudaErrorLaunchFailure = 719,
    cudaErrorCooperativeLaunchTooLarge = 720, cudaErrorNotPermitted = 800, cudaErrorNotSupported = 801,
    cudaErrorStreamCaptureUnsupported = 900, cudaErrorUnknown = 999
} cudaError_t;
typedef cudaError_t CUresult;
enum cudaMemcpyKind { cudaMemcpyHostToHost = 0, cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3, cudaMemcpyDefault = 4 };
enum cudaFuncCache { cudaFuncCachePreferNone = 0, cudaFuncCachePreferShared = 1, cudaFuncCachePreferL1 = 2,
    cudaFuncCachePreferEqual = 3 };
enum cudaSharedMemConfig { cudaSharedMemBankSizeDefault = 0, cudaSharedMemBankSizeFourByte = 1,
    cudaSharedMemBankSizeEightByte = 2 };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9 };
enum cudaDeviceAttr { cudaDevAttrMaxThreadsPerBlock = 1, cudaDevAttrMaxBlockDimX = 2, cudaDevAttrMaxBlockDimY = 3,
    cudaDevAttrMaxBlockDimZ = 4, cudaDevAttrMaxGridDimX = 5, cudaDevAttrMaxGridDimY = 6, cudaDevAttrMaxGridDimZ = 7,
    cudaDevAttrMaxSharedMemoryPerBlock = 8, cudaDevAttrTotalConstantMemory = 9, cudaDevAttrWarpSize = 10,
    cudaDevAttrMaxRegistersPerBlock = 12, cudaDevAttrClockRate = 13, cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrManagedMemory = 83, cudaDevAttrMemoryClockRate = 36, cudaDevAttrGlobalMemoryBusWidth = 37,
    cudaDevAttrL2CacheSize = 38, cudaDevAttrMaxThreadsPerMultiProcessor = 39, cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76, cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
    cudaDevAttrConcurrentManagedAccess = 89, cudaDevAttrCooperativeLaunch = 95,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97, cudaDevAttrMaxPitch = 11, cudaDevAttrTextureAlignment = 14,
    cudaDevAttrGpuOverlap = 15, cudaDevAttrKernelExecTimeout = 17, cudaDevAttrIntegrated = 18,
    cudaDevAttrCanMapHostMemory = 19, cudaDevAttrComputeMode = 20, cudaDevAttrConcurrentKernels = 31,
    cudaDevAttrEccEnabled = 32, cudaDevAttrPciBusId = 33, cudaDevAttrPciDeviceId = 34, cudaDevAttrTccDriver = 35,
    cudaDevAttrAsyncEngineCount = 40, cudaDevAttrUnifiedAddressing = 41, cudaDevAttrPciDomainId = 50,
    cudaDevAttrStreamPrioritiesSupported = 78, cudaDevAttrGlobalL1CacheSupported = 79,
    cudaDevAttrLocalL1CacheSupported = 80, cudaDevAttrMaxRegistersPerMultiprocessor = 82,
    cudaDevAttrIsMultiGpuBoard = 84, cudaDevAttrPageableMemoryAccess = 88,
    cudaDevAttrComputePreemptionSupported = 90, cudaDevAttrMaxBlocksPerMultiprocessor = 106 };
enum cudaLimit { cudaLimitStackSize = 0, cudaLimitPrintfFifoSize = 1, cudaLimitMallocHeapSize = 2, cudaLimitDevRuntimeSyncDepth = 3,
    cudaLimitDevRuntimePendingLaunchCount = 4 };
enum cudaMemoryAdvise { cudaMemAdviseSetReadMostly = 1, cudaMemAdviseUnsetReadMostly = 2, cudaMemAdviseSetPreferredLocation = 3,
    cudaMemAdviseSetAccessedBy = 5 };
#define cudaCpuDeviceId (-1)
#define cudaHostAllocDefault 0
#define cudaHostAllocPortable 1
#define cudaHostAllocMapped 2
#define cudaHostAllocWriteCombined 4
#define cudaHostRegisterDefault 0
#define cudaHostRegisterMapped 2
#define cudaMemAttachGlobal 1
#define cudaMemAttachHost 2
#define cudaEventDefault 0
#define cudaEventBlockingSync 1
#define cudaEventDisableTiming 2
#define cudaStreamDefault 0
#define cudaStreamNonBlocking 1
#define cudaStreamLegacy ((cudaStream_t)1)
#define cudaStreamPerThread ((cudaStream_t)2)
#define cudaDeviceScheduleAuto 0
#define cudaDeviceScheduleSpin 1
#define cudaDeviceScheduleYield 2
#define cudaDeviceScheduleBlockingSync 4
#define cudaDeviceMapHost 8
#define CUDART_CB
struct __stream; struct __event;
typedef void* cudaStream_t;
typedef void* cudaEvent_t;
#define __V(T, b) struct b##1 { T x; }; struct b##2 { T x, y; }; struct b##3 { T x, y, z; }; struct b##4 { T x, y, z, w; }; \
    b##1 make_##b##1(T x) { b##1 v; v.x = x; return v; } \
    b##2 make_##b##2(T x, T y) { b##2 v; v.x = x; v.y = y; return v; } \
    b##3 make_##b##3(T x, T y, T z) { b##3 v; v.x = x; v.y = y; v.z = z; return v; } \
    b##4 make_##b##4(T x, T y, T z, T w) { b##4 v; v.x = x; v.y = y; v.z = z; v.w = w; return v; }
__V(signed char, char) __V(unsigned char, uchar) __V(short, short) __V(unsigned short, ushort) __V(int, int)
__V(unsigned int, uint) __V(long, long) __V(unsigned long, ulong) __V(long long, longlong)
__V(unsigned long long, ulonglong) __V(float, float) __V(double, double)
struct dim3 {
    unsigned int x, y, z;
    dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
    dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};
struct cudaExtent { size_t width, height, depth; };
struct cudaUUID_t { char bytes[16]; };
struct cudaDeviceProp {
    char name[256];
    cudaUUID_t uuid;
    size_t totalGlobalMem, sharedMemPerBlock;
    int regsPerBlock, warpSize;
    size_t memPitch;
    int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate;
    size_t totalConstMem;
    int major, minor;
    size_t textureAlignment, texturePitchAlignment;
    int deviceOverlap, multiProcessorCount, kernelExecTimeoutEnabled, integrated, canMapHostMemory, computeMode;
    int maxTexture1D, maxTexture2D[2], maxTexture3D[3], maxTexture1DLayered[2], maxTexture2DLayered[3];
    int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver, asyncEngineCount;
    int unifiedAddressing, memoryClockRate, memoryBusWidth, l2CacheSize, maxThreadsPerMultiProcessor;
    int streamPrioritiesSupported, globalL1CacheSupported, localL1CacheSupported;
    size_t sharedMemPerMultiprocessor;
    int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID, singleToDoublePrecisionPerfRatio;
    int pageableMemoryAccess, concurrentManagedAccess, computePreemptionSupported;
    int canUseHostPointerForRegisteredMem, cooperativeLaunch, cooperativeMultiDeviceLaunch;
    size_t sharedMemPerBlockOptin;
    int maxBlocksPerMultiProcessor;
};
struct cudaFuncAttributes { size_t sharedSizeBytes, constSizeBytes, localSizeBytes; int maxThreadsPerBlock, numRegs,
    ptxVersion, binaryVersion, cacheModeCA, maxDynamicSharedSizeBytes; };
struct cudaPointerAttributes { int type, device; void* devicePointer; void* hostPointer; };

cudaError_t __cuda_malloc(void** p, size_t size, int kind);
cudaError_t __cuda_malloc_pitch(void** p, size_t* pitch, size_t width, size_t height);
cudaError_t __cuda_free(void* p, int kind);
cudaError_t __cuda_copy(void* to, const void* from, size_t size, int kind, int async);
cudaError_t __cuda_copy_async(void* to, const void* from, size_t size, int kind, cudaStream_t s);
cudaError_t __cuda_copy2d(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height, int kind);
cudaError_t __cuda_set(void* to, int value, size_t size);
cudaError_t __cuda_set_async(void* to, int value, size_t size, cudaStream_t s);
cudaError_t __cuda_set2d(void* to, size_t pitch, int value, size_t width, size_t height);
cudaError_t __cuda_symbol(const void* symbol, size_t size, size_t offset, const void* data, int kind, int to);
cudaError_t __cuda_last(int clear);
const char* __cuda_error_text(int code, int name);
cudaError_t __cuda_properties(cudaDeviceProp* p, int device);
cudaError_t __cuda_attribute(int* value, int attribute, int device);
cudaError_t __cuda_event(cudaEvent_t* e);
cudaError_t __cuda_event_record(cudaEvent_t e, cudaStream_t s);
cudaError_t __cuda_event_free(cudaEvent_t e);
cudaError_t __cuda_elapsed(float* ms, cudaEvent_t a, cudaEvent_t b);
cudaError_t __cuda_event_wait(cudaEvent_t e);
cudaError_t __cuda_stream(cudaStream_t* s, unsigned int flags);
cudaError_t __cuda_stream_wait(cudaStream_t s, cudaEvent_t e);
cudaError_t __cuda_stream_free(cudaStream_t s);
cudaError_t __cuda_stream_used(cudaStream_t s);
cudaError_t __cuda_sync(int what);
cudaError_t __cuda_set_device(int n);
cudaError_t __cuda_memory(size_t* free, size_t* total);
cudaError_t __cuda_function(const void* f, int attribute, int value);
cudaError_t __cuda_occupancy(int* blocks, int threads, size_t shared);
cudaError_t __cuda_pointer(cudaPointerAttributes* a, const void* p);
int __cuda_device();

template <class T> cudaError_t cudaMalloc(T** p, size_t size) { return __cuda_malloc((void**)p, size, 0); }
template <class T> cudaError_t cudaMallocManaged(T** p, size_t size, unsigned int flags = 1) { return __cuda_malloc((void**)p, size, 1); }
template <class T> cudaError_t cudaMallocHost(T** p, size_t size, unsigned int flags = 0) { return __cuda_malloc((void**)p, size, 2); }
template <class T> cudaError_t cudaHostAlloc(T** p, size_t size, unsigned int flags) { return __cuda_malloc((void**)p, size, 3); }
template <class T> cudaError_t cudaMallocAsync(T** p, size_t size, cudaStream_t s) { return __cuda_malloc((void**)p, size, 0); }
template <class T> cudaError_t cudaMallocPitch(T** p, size_t* pitch, size_t width, size_t height) { return __cuda_malloc_pitch((void**)p, pitch, width, height); }
cudaError_t cudaFree(void* p) { return __cuda_free(p, 0); }
cudaError_t cudaFreeAsync(void* p, cudaStream_t s) { return __cuda_free(p, 0); }
cudaError_t cudaFreeHost(void* p) { return __cuda_free(p, 2); }
cudaError_t cudaMemcpy(void* to, const void* from, size_t size, cudaMemcpyKind kind) { return __cuda_copy(to, from, size, kind, 0); }
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, cudaMemcpyKind kind, cudaStream_t s = 0) { return __cuda_copy_async(to, from, size, kind, s); }
cudaError_t cudaMemcpyPeer(void* to, int a, const void* from, int b, size_t size) { return __cuda_copy(to, from, size, 3, 0); }
cudaError_t cudaMemcpy2D(void* to, size_t tp, const void* from, size_t fp, size_t w, size_t h, cudaMemcpyKind kind) { return __cuda_copy2d(to, tp, from, fp, w, h, kind); }
cudaError_t cudaMemcpy2DAsync(void* to, size_t tp, const void* from, size_t fp, size_t w, size_t h, cudaMemcpyKind kind, cudaStream_t s = 0) { return __cuda_copy2d(to, tp, from, fp, w, h, kind); }
cudaError_t cudaMemset(void* to, int value, size_t size) { return __cuda_set(to, value, size); }
cudaError_t cudaMemsetAsync(void* to, int value, size_t size, cudaStream_t s = 0) { return __cuda_set_async(to, value, size, s); }
cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t w, size_t h) { return __cuda_set2d(to, pitch, value, w, h); }
template <class T> cudaError_t cudaMemcpyToSymbol(const T& symbol, const void* from, size_t size, size_t offset = 0, cudaMemcpyKind kind = cudaMemcpyHostToDevice) { return __cuda_symbol((const void*)&symbol, size, offset, from, kind, 1); }
template <class T> cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, size_t size, size_t offset = 0, cudaMemcpyKind kind = cudaMemcpyDeviceToHost) { return __cuda_symbol((const void*)&symbol, size, offset, to, kind, 0); }
template <class T> cudaError_t cudaMemcpyToSymbolAsync(const T& symbol, const void* from, size_t size, size_t offset, cudaMemcpyKind kind, cudaStream_t s = 0) { return __cuda_symbol((const void*)&symbol, size, offset, from, kind, 1); }
template <class T> cudaError_t cudaGetSymbolAddress(void** p, const T& symbol) { *p = (void*)&symbol; return cudaSuccess; }
template <class T> cudaError_t cudaGetSymbolSize(size_t* n, const T& symbol) { *n = sizeof(T); return cudaSuccess; }
template <class T> cudaError_t cudaHostGetDevicePointer(T** d, void* h, unsigned int flags) { *d = (T*)h; return cudaSuccess; }
cudaError_t cudaHostRegister(void* p, size_t size, unsigned int flags) { return cudaSuccess; }
cudaError_t cudaHostUnregister(void* p) { return cudaSuccess; }
cudaError_t cudaMemGetInfo(size_t* f, size_t* t) { return __cuda_memory(f, t); }
cudaError_t cudaMemPrefetchAsync(const void* p, size_t size, int device, cudaStream_t s = 0) { return cudaSuccess; }
cudaError_t cudaMemAdvise(const void* p, size_t size, cudaMemoryAdvise a, int device) { return cudaSuccess; }
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* a, const void* p) { return __cuda_pointer(a, p); }
cudaError_t cudaDeviceSynchronize() { return __cuda_sync(0); }
cudaError_t cudaThreadSynchronize() { return __cuda_sync(0); }
cudaError_t cudaDeviceReset() { return __cuda_sync(3); }
cudaError_t cudaThreadExit() { return __cuda_sync(3); }
cudaError_t cudaGetLastError() { return __cuda_last(1); }
cudaError_t cudaPeekAtLastError() { return __cuda_last(0); }
const char* cudaGetErrorString(cudaError_t e) { return __cuda_error_text(e, 0); }
const char* cudaGetErrorName(cudaError_t e) { return __cuda_error_text(e, 1); }
cudaError_t cudaGetDeviceCount(int* n) { *n = 1; return cudaSuccess; }
cudaError_t cudaGetDevice(int* n) { *n = 0; return cudaSuccess; }
cudaError_t cudaSetDevice(int n) { return __cuda_set_device(n); }
cudaError_t cudaSetDeviceFlags(unsigned int flags) { return cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device) { return __cuda_properties(p, device); }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr a, int device) { return __cuda_attribute(value, a, device); }
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* p) { *device = 0; return cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* v) { *v = 12040; return cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* v) { *v = 12040; return cudaSuccess; }
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache c) { return cudaSuccess; }
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig c) { return cudaSuccess; }
cudaError_t cudaDeviceSetLimit(cudaLimit l, size_t n) { return cudaSuccess; }
cudaError_t cudaDeviceGetLimit(size_t* n, cudaLimit l) { *n = l == cudaLimitStackSize ? 1024 : 8388608; return cudaSuccess; }
cudaError_t cudaDeviceCanAccessPeer(int* can, int a, int b) { *can = 0; return cudaSuccess; }
cudaError_t cudaDeviceEnablePeerAccess(int a, unsigned int flags) { return cudaErrorInvalidDevice; }
cudaError_t cudaEventCreate(cudaEvent_t* e) { return __cuda_event(e); }
cudaError_t cudaEventCreate(cudaEvent_t* e, unsigned int flags) { return __cuda_event(e); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned int flags) { return __cuda_event(e); }
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s = 0) { return __cuda_event_record(e, s); }
cudaError_t cudaEventSynchronize(cudaEvent_t e) { return __cuda_event_wait(e); }
cudaError_t cudaEventQuery(cudaEvent_t e) { return __cuda_event_wait(e); }
cudaError_t cudaEventDestroy(cudaEvent_t e) { return __cuda_event_free(e); }
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t a, cudaEvent_t b) { return __cuda_elapsed(ms, a, b); }
cudaError_t cudaStreamCreate(cudaStream_t* s) { return __cuda_stream(s, 0); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned int flags) { return __cuda_stream(s, flags); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* s, unsigned int flags, int priority) { return __cuda_stream(s, flags); }
cudaError_t cudaDeviceGetStreamPriorityRange(int* low, int* high) { *low = 0; *high = -5; return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t s) { return __cuda_stream_wait(s, 0); }
cudaError_t cudaStreamQuery(cudaStream_t s) { return __cuda_stream_wait(s, 0); }
cudaError_t cudaStreamDestroy(cudaStream_t s) { return __cuda_stream_free(s); }
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned int flags = 0) { return __cuda_stream_wait(s, e); }
template <class F> cudaError_t cudaFuncSetAttribute(F* f, cudaFuncAttribute a, int value) { return __cuda_function(0, a, value); }
cudaError_t __cuda_launch(const void* f, const void* grid, const void* block, void** args, size_t shared, cudaStream_t s, int cooperative);
template <class F> cudaError_t cudaLaunchKernel(F* f, dim3 grid, dim3 block, void** args, size_t shared = 0, cudaStream_t s = 0) { return __cuda_launch((const void*)f, &grid, &block, args, shared, s, 0); }
template <class F> cudaError_t cudaLaunchCooperativeKernel(F* f, dim3 grid, dim3 block, void** args, size_t shared = 0, cudaStream_t s = 0) { return __cuda_launch((const void*)f, &grid, &block, args, shared, s, 1); }
template <class F> cudaError_t cudaFuncSetCacheConfig(F* f, cudaFuncCache c) { return cudaSuccess; }
template <class F> cudaError_t cudaFuncSetSharedMemConfig(F* f, cudaSharedMemConfig c) { return cudaSuccess; }
size_t __cuda_static_shared(const void* kernel);
template <class F> cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* a, F* f) { memset(a, 0, sizeof(cudaFuncAttributes)); a->maxThreadsPerBlock = 1024; a->numRegs = 32; a->sharedSizeBytes = __cuda_static_shared((const void*)f); return cudaSuccess; }
template <class F> cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* n, F f, int threads, size_t shared) { return __cuda_occupancy(n, threads, shared + __cuda_static_shared((const void*)f)); }
template <class F> cudaError_t cudaOccupancyMaxPotentialBlockSize(int* grid, int* block, F f, size_t shared = 0, int limit = 0) { *block = 1024; return __cuda_occupancy(grid, -1024, shared); }
typedef void (*cudaStreamCallback_t)(cudaStream_t, cudaError_t, void*);
typedef void (*cudaHostFn_t)(void*);
cudaError_t cudaStreamAddCallback(cudaStream_t s, cudaStreamCallback_t f, void* data, unsigned int flags) { f(s, cudaSuccess, data); return cudaSuccess; }
cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t f, void* data) { f(data); return cudaSuccess; }
// graphs by stream capture
typedef void* cudaGraph_t; typedef void* cudaGraphExec_t; typedef void* cudaGraphNode_t;
enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal = 0, cudaStreamCaptureModeThreadLocal = 1, cudaStreamCaptureModeRelaxed = 2 };
cudaError_t __graph_begin();
cudaError_t __graph_end(cudaGraph_t* g);
cudaError_t __graph_launch(cudaGraphExec_t e);
cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode m = cudaStreamCaptureModeGlobal) { return __graph_begin(); }
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t* g) { return __graph_end(g); }
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* e, cudaGraph_t g, cudaGraphNode_t* n, char* log, size_t size) { *e = g; return cudaSuccess; }
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* e, cudaGraph_t g, unsigned long long flags = 0) { *e = g; return cudaSuccess; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t e, cudaStream_t s) { return __graph_launch(e); }
cudaError_t cudaGraphUpload(cudaGraphExec_t e, cudaStream_t s) { return cudaSuccess; }
cudaError_t cudaGraphDestroy(cudaGraph_t g) { return cudaSuccess; }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t e) { return cudaSuccess; }
#define cudaSharedmemCarveoutDefault (-1)
#define cudaSharedmemCarveoutMaxShared 100
#define cudaSharedmemCarveoutMaxL1 0
namespace cuda { template <class A, class B> A ceil_div(A a, B b) { return (A)((a + b - 1) / b); } }
cudaError_t cudaProfilerStart() { return cudaSuccess; }
cudaError_t cudaProfilerStop() { return cudaSuccess; }
#define __MIN_MAX(T) T min(T a, T b) { return b < a ? b : a; } T max(T a, T b) { return a < b ? b : a; }
__MIN_MAX(int) __MIN_MAX(unsigned int) __MIN_MAX(long) __MIN_MAX(unsigned long) __MIN_MAX(long long)
__MIN_MAX(unsigned long long)
float min(float a, float b) { return fminf(a, b); } float max(float a, float b) { return fmaxf(a, b); }
double min(double a, double b) { return fmin(a, b); } double max(double a, double b) { return fmax(a, b); }
int nvtxRangePushA(const char* s) { return 0; }
int nvtxRangePush(const char* s) { return 0; }
int nvtxRangePop() { return 0; }
enum cudaMemoryType { cudaMemoryTypeUnregistered = 0, cudaMemoryTypeHost = 1, cudaMemoryTypeDevice = 2, cudaMemoryTypeManaged = 3 };
enum cudaComputeMode { cudaComputeModeDefault = 0, cudaComputeModeExclusive = 1, cudaComputeModeProhibited = 2, cudaComputeModeExclusiveProcess = 3 };
enum cudaDeviceP2PAttr { cudaDevP2PAttrPerformanceRank = 1, cudaDevP2PAttrAccessSupported = 2, cudaDevP2PAttrNativeAtomicSupported = 3 };
enum cudaMemRangeAttribute { cudaMemRangeAttributeReadMostly = 1, cudaMemRangeAttributePreferredLocation = 2, cudaMemRangeAttributeAccessedBy = 3, cudaMemRangeAttributeLastPrefetchLocation = 4 };
cudaError_t cudaMemcpyPeerAsync(void* to, int a, const void* from, int b, size_t size, cudaStream_t s = 0) { return __cuda_copy_async(to, from, size, 3, s); }
cudaError_t cudaDeviceDisablePeerAccess(int device) { return cudaErrorInvalidDevice; }
cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr a, int x, int y) { *value = 0; return cudaSuccess; }
template <class T> cudaError_t cudaStreamAttachMemAsync(cudaStream_t s, T* p, size_t size = 0, unsigned int flags = 4) { return cudaSuccess; }
cudaError_t cudaStreamGetPriority(cudaStream_t s, int* p) { *p = 0; return cudaSuccess; }
cudaError_t cudaStreamGetFlags(cudaStream_t s, unsigned int* f) { *f = 0; return cudaSuccess; }
cudaError_t cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t s = 0, unsigned int flags = 0) { return __cuda_event_record(e, s); }
cudaError_t cudaGetDeviceFlags(unsigned int* f) { *f = 0; return cudaSuccess; }
cudaError_t cudaDeviceGetPCIBusId(char* to, int size, int device) { snprintf(to, size, "0000:00:04.0"); return cudaSuccess; }
cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* id) { *device = 0; return cudaSuccess; }
cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* c) { *c = (cudaFuncCache)0; return cudaSuccess; }
cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* c) { *c = (cudaSharedMemConfig)1; return cudaSuccess; }
cudaError_t cudaHostGetFlags(unsigned int* f, void* p) { *f = 0; return cudaSuccess; }
cudaError_t cudaMemRangeGetAttribute(void* to, size_t size, cudaMemRangeAttribute a, const void* p, size_t n) { memset(to, 0, size); return cudaSuccess; }
template <class T> cudaError_t cudaMemcpyFromSymbolAsync(void* to, const T& symbol, size_t size, size_t offset, cudaMemcpyKind kind, cudaStream_t s = 0) { return cudaMemcpyFromSymbol(to, symbol, size, offset, kind); }
template <class G, class F> cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int* grid, int* block, G f, F size, int limit = 0) { *block = 1024; return __cuda_occupancy(grid, -1024, size(1024)); }
template <class F> cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* size, F f, int blocks, int threads) { *size = 49152 / (blocks > 0 ? blocks : 1); return cudaSuccess; }
template <class F> cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* n, F f, int threads, size_t shared, unsigned int flags) { return __cuda_occupancy(n, threads, shared + __cuda_static_shared((const void*)f)); }
// The driver API, as far as programs query the device.
typedef int CUdevice; typedef void* CUcontext; typedef cudaStream_t CUstream; typedef cudaEvent_t CUevent; typedef unsigned long long CUdeviceptr;
typedef enum { CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1, CUDA_ERROR_OUT_OF_MEMORY = 2, CUDA_ERROR_NO_DEVICE = 100, CUDA_ERROR_INVALID_DEVICE = 101 } CUresult;
typedef enum CUdevice_attribute_enum { CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X = 2, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y = 3, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z = 4, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X = 5, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y = 6, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z = 7, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8, CU_DEVICE_ATTRIBUTE_SHARED_MEMORY_PER_BLOCK = 8, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY = 9, CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10, CU_DEVICE_ATTRIBUTE_MAX_PITCH = 11, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK = 12, CU_DEVICE_ATTRIBUTE_REGISTERS_PER_BLOCK = 12, CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT = 14, CU_DEVICE_ATTRIBUTE_GPU_OVERLAP = 15, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16, CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT = 17, CU_DEVICE_ATTRIBUTE_INTEGRATED = 18, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY = 19, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE = 20, CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS = 31, CU_DEVICE_ATTRIBUTE_ECC_ENABLED = 32, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID = 33, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID = 34, CU_DEVICE_ATTRIBUTE_TCC_DRIVER = 35, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT = 40, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING = 41, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID = 50, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76, CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED = 78, CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED = 79, CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED = 80, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR = 82, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY = 83, CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD = 84, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS = 88, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS = 89, CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED = 90, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH = 95, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR = 106 } CUdevice_attribute;
CUresult cuInit(unsigned int flags) { return CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int* v) { *v = 12040; return CUDA_SUCCESS; }
CUresult cuDeviceGetCount(int* n) { *n = 1; return CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice* d, int n) { *d = n; return n == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE; }
CUresult cuDeviceGetName(char* to, int size, CUdevice d) { cudaDeviceProp p; __cuda_properties(&p, d); snprintf(to, size, "%s", p.name); return CUDA_SUCCESS; }
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute a, CUdevice d) { return (CUresult)__cuda_attribute(value, (cudaDeviceAttr)(int)a, d); }
CUresult cuDeviceTotalMem(size_t* n, CUdevice d) { size_t left; __cuda_memory(&left, n); return CUDA_SUCCESS; }
CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice d) { cudaDeviceProp p; __cuda_properties(&p, d); *major = p.major; *minor = p.minor; return CUDA_SUCCESS; }
CUresult cuCtxCreate(CUcontext* c, unsigned int flags, CUdevice d) { *c = (void*)c; return CUDA_SUCCESS; }
CUresult cuCtxDestroy(CUcontext c) { return CUDA_SUCCESS; }
CUresult cuCtxSynchronize() { return (CUresult)__cuda_sync(0); }
CUresult cuGetErrorString(CUresult e, const char** text) { *text = __cuda_error_text((cudaError_t)(int)e, 0); return CUDA_SUCCESS; }
CUresult cuGetErrorName(CUresult e, const char** text) { *text = __cuda_error_text((cudaError_t)(int)e, 1); return CUDA_SUCCESS; }
CUresult cuMemGetInfo(size_t* f, size_t* t) { return (CUresult)__cuda_memory(f, t); }
// Profiler ranges (NVTX): no effect.
typedef unsigned long nvtxRangeId_t; typedef void* nvtxDomainHandle_t; typedef void* nvtxStringHandle_t;
#define NVTX_VERSION 3
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE ((unsigned short)sizeof(nvtxEventAttributes_t))
enum { NVTX_COLOR_UNKNOWN = 0, NVTX_COLOR_ARGB = 1, NVTX_MESSAGE_UNKNOWN = 0, NVTX_MESSAGE_TYPE_ASCII = 1, NVTX_MESSAGE_TYPE_UNICODE = 2, NVTX_PAYLOAD_UNKNOWN = 0, NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 = 1, NVTX_PAYLOAD_TYPE_INT64 = 2, NVTX_PAYLOAD_TYPE_DOUBLE = 3 };
union __nvtx_payload { unsigned long ullValue; long llValue; double dValue; unsigned int uiValue; int iValue; float fValue; };
union __nvtx_message { const char* ascii; const void* unicode; nvtxStringHandle_t registered; };
typedef struct nvtxEventAttributes_v2 { unsigned short version; unsigned short size; unsigned int category; int colorType; unsigned int color; int payloadType; int reserved0; __nvtx_payload payload; int messageType; __nvtx_message message; } nvtxEventAttributes_t;
int nvtxRangePushEx(const nvtxEventAttributes_t* a) { return 0; }
void nvtxMarkA(const char* s) {}
void nvtxMark(const char* s) {}
void nvtxMarkEx(const nvtxEventAttributes_t* a) {}
nvtxRangeId_t nvtxRangeStartA(const char* s) { return 1; }
nvtxRangeId_t nvtxRangeStart(const char* s) { return 1; }
nvtxRangeId_t nvtxRangeStartEx(const nvtxEventAttributes_t* a) { return 1; }
void nvtxRangeEnd(nvtxRangeId_t id) {}
void nvtxNameOsThreadA(unsigned int id, const char* s) {}
nvtxDomainHandle_t nvtxDomainCreateA(const char* s) { return nullptr; }
void nvtxDomainDestroy(nvtxDomainHandle_t d) {}
int nvtxDomainRangePushEx(nvtxDomainHandle_t d, const nvtxEventAttributes_t* a) { return 0; }
int nvtxDomainRangePop(nvtxDomainHandle_t d) { return 0; }
enum cudaMemLocationType { cudaMemLocationTypeInvalid = 0, cudaMemLocationTypeDevice = 1, cudaMemLocationTypeHost = 2,
    cudaMemLocationTypeHostNuma = 3, cudaMemLocationTypeHostNumaCurrent = 4 };
struct cudaMemLocation { cudaMemLocationType type; int id; };
cudaError_t cudaMemPrefetchAsync(const void* p, size_t size, cudaMemLocation where, unsigned int flags, cudaStream_t s = 0) { return cudaSuccess; }
cudaError_t cudaMemAdvise(const void* p, size_t size, cudaMemoryAdvise a, cudaMemLocation where) { return cudaSuccess; }
