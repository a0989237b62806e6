// Threads of a CUDA block as fibers that run in turn, each as far as its next barrier or exchange, blocks one after the other.
// A context starts a fiber on its own stack; jumps go on, because a context asks the system for the signals at every turn.
#pragma once
#undef _FORTIFY_SOURCE  // it takes a jump onto another stack for a mistake
#include <setjmp.h>
#include <ucontext.h>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

struct dim3 { unsigned x, y, z; };
static dim3 threadIdx, blockIdx, blockDim, gridDim;

static jmp_buf scheduler, *running;
static bool ended;
static std::function<void()>* body;

static unsigned alive, arrived, barriers;  // threads of the block that have not ended, that wait; barriers passed

// Everyone else has a turn: after it, what the lanes of this warp did before theirs is done.
static void take_turns() {
    if (!_setjmp(*running)) _longjmp(scheduler, 1);
}

static void open_if_all_are_there() {
    if (arrived && arrived == alive) arrived = 0, ++barriers;
}

static void __syncthreads() {
    unsigned before = barriers;
    ++arrived;
    open_if_all_are_there();
    do take_turns();  // who opens it waits too: lanes of a warp stay together
    while (barriers == before);
}

static void fiber() {
    (*body)();
    ended = true;
    --alive;
    open_if_all_are_there();
    take_turns();
}

// `before` is done before every block: shared memory made worthless, for example.
static void launch(dim3 grid, dim3 block, std::function<void()> kernel, std::function<void()> before = [] {}) {
    const size_t stack = 256 << 10;
    unsigned threads = block.x * block.y;
    std::unique_ptr<char[]> stacks(new char[stack * threads]);  // not written: only pages that are used are there
    gridDim = grid;
    blockDim = block;
    body = &kernel;
    for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
    for (unsigned x = 0; x < grid.x; ++x) {
        before();
        std::vector<ucontext_t> contexts(threads);
        std::unique_ptr<jmp_buf[]> places(new jmp_buf[threads]);
        std::vector<bool> begun(threads, false), done(threads, false);
        alive = threads;
        arrived = 0;
        for (unsigned t = 0; t < threads; ++t) {
            getcontext(&contexts[t]);
            contexts[t].uc_stack.ss_sp = stacks.get() + t * stack;
            contexts[t].uc_stack.ss_size = stack;
            contexts[t].uc_link = nullptr;
            makecontext(&contexts[t], fiber, 0);
        }
        for (unsigned left = threads; left > 0;)
            for (unsigned t = 0; t < threads; ++t) {
                if (done[t]) continue;
                threadIdx = {t % block.x, t / block.x, 0};
                blockIdx = {x, y, z};
                running = &places[t];
                ended = false;
                if (!_setjmp(scheduler)) {
                    if (begun[t]) _longjmp(*running, 1);
                    begun[t] = true;
                    setcontext(&contexts[t]);
                }
                if (ended) done[t] = true, --left;
            }
    }
}
