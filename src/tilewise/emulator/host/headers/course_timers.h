// Small headers that courses hand out: GpuTimer (Udacity) and StartTimer, GetTimer (NVIDIA's workshops).
struct GpuTimer {
    cudaEvent_t start; cudaEvent_t stop;
    GpuTimer() { cudaEventCreate(&start); cudaEventCreate(&stop); }
    ~GpuTimer() { cudaEventDestroy(start); cudaEventDestroy(stop); }
    void Start() { cudaEventRecord(start, 0); }
    void Stop() { cudaEventRecord(stop, 0); }
    float Elapsed() { float t; cudaEventSynchronize(stop); cudaEventElapsedTime(&t, start, stop); return t; }
};
long __timer_start = 0;
void StartTimer() { __timer_start = __now_ns(); }
double GetTimer() { return (double)(__now_ns() - __timer_start) / 1e6; }
