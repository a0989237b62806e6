// CUDA C behind a C++ compiler: threads are fibers that run one after the other from barrier to barrier.
#include <ucontext.h>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

struct dim3 { unsigned x, y, z; };
static dim3 threadIdx, blockIdx, blockDim, gridDim;

#define __global__ static
#define __device__ static
#define __shared__ static

static inline int min(int a, int b) { return a < b ? a : b; }
static inline int max(int a, int b) { return a > b ? a : b; }

// C leaves the order of -0 and +0 open; the card puts -0 below.
template <typename T> static T least(T a, T b) { return a == 0 && b == 0 ? -(-a - b) : a != a ? b : b != b ? a : a < b ? a : b; }
template <typename T> static T most(T a, T b) { return a == 0 && b == 0 ? a + b : a != a ? b : b != b ? a : a > b ? a : b; }
#define fminf least<float>
#define fmaxf most<float>
#define fmin least<double>
#define fmax most<double>

static ucontext_t scheduler, *running;
static bool ended;
static std::function<void()>* body;

static void __syncthreads() { swapcontext(running, &scheduler); }

static void fiber() {
    (*body)();
    ended = true;
    swapcontext(running, &scheduler);
}

static void launch(unsigned blocks, unsigned threads, std::function<void()> kernel) {
    const size_t stack = 256 << 10;
    static std::vector<char> memory(stack * threads);
    gridDim = {blocks, 1, 1};
    blockDim = {threads, 1, 1};
    body = &kernel;
    for (unsigned b = 0; b < blocks; ++b) {
        std::vector<ucontext_t> contexts(threads);
        std::vector<bool> done(threads, false);
        for (unsigned t = 0; t < threads; ++t) {
            getcontext(&contexts[t]);
            contexts[t].uc_stack.ss_sp = memory.data() + t * stack;
            contexts[t].uc_stack.ss_size = stack;
            contexts[t].uc_link = nullptr;
            makecontext(&contexts[t], fiber, 0);
        }
        for (unsigned left = threads; left > 0;)
            for (unsigned t = 0; t < threads; ++t) {
                if (done[t]) continue;
                threadIdx = {t, 0, 0};
                blockIdx = {b, 0, 0};
                running = &contexts[t];
                ended = false;
                swapcontext(&scheduler, running);
                if (ended) done[t] = true, --left;
            }
    }
}
