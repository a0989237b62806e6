// Of the CUDA runtime and driver what few programs use: read only where it is named. There is one card.
enum cudaMemoryType { cudaMemoryTypeUnregistered = 0, cudaMemoryTypeHost = 1, cudaMemoryTypeDevice = 2, cudaMemoryTypeManaged = 3 };
enum cudaComputeMode { cudaComputeModeDefault = 0, cudaComputeModeExclusive = 1, cudaComputeModeProhibited = 2, cudaComputeModeExclusiveProcess = 3 };
enum cudaDeviceP2PAttr { cudaDevP2PAttrPerformanceRank = 1, cudaDevP2PAttrAccessSupported = 2, cudaDevP2PAttrNativeAtomicSupported = 3 };
enum cudaMemRangeAttribute { cudaMemRangeAttributeReadMostly = 1, cudaMemRangeAttributePreferredLocation = 2, cudaMemRangeAttributeAccessedBy = 3, cudaMemRangeAttributeLastPrefetchLocation = 4 };
cudaError_t cudaMemcpyPeerAsync(void* to, int a, const void* from, int b, size_t size, cudaStream_t s = 0) { return __cuda_copy(to, from, size, 3, 1); }
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
// The driver, as far as programs ask it for the card.
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
// Ranges for a profiler: there is none here.
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
