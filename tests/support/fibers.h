// Threads of a CUDA block as fibers that run in turn, each as far as its next barrier or exchange, blocks one after the other; those of
// a cluster as far as they meet, each with the shared memory that it left.
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
static bool ended, parked;
static unsigned cluster_size = 1;
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

// No further before all blocks of the cluster are here.
static void wait_for_cluster() {
    parked = true;
    take_turns();
}

static void fiber() {
    (*body)();
    ended = true;
    --alive;
    open_if_all_are_there();
    take_turns();
}

// One block's threads, and how far they are.
struct Threads {
    enum State { READY, PARKED, DONE };
    const size_t stack = 256 << 10;
    std::unique_ptr<char[]> stacks;  // not written: only pages that are used are there
    std::vector<ucontext_t> contexts;
    std::unique_ptr<jmp_buf[]> places;
    std::vector<bool> begun;
    std::vector<State> state;
    unsigned living;

    explicit Threads(unsigned threads)
        : stacks(new char[stack * threads]), contexts(threads), places(new jmp_buf[threads]), begun(threads, false),
          state(threads, READY), living(threads) {
        for (unsigned t = 0; t < threads; ++t) {
            getcontext(&contexts[t]);
            contexts[t].uc_stack.ss_sp = stacks.get() + t * stack;
            contexts[t].uc_stack.ss_size = stack;
            contexts[t].uc_link = nullptr;
            makecontext(&contexts[t], fiber, 0);
        }
    }
    void turn(unsigned t) {
        running = &places[t];
        ended = parked = false;
        if (!_setjmp(scheduler)) {
            if (begun[t]) _longjmp(*running, 1);
            begun[t] = true;
            setcontext(&contexts[t]);
        }
        if (ended || parked) state[t] = ended ? DONE : PARKED;
    }
    // Until all are done or wait for the cluster; returns whether any waits.
    bool run(dim3 at, dim3 block) {
        alive = living;
        arrived = 0;
        for (bool any = true; any;) {
            any = false;
            for (unsigned t = 0; t < state.size(); ++t) {
                if (state[t] != READY) continue;
                any = true;
                threadIdx = {t % block.x, t / block.x, 0};
                blockIdx = at;
                turn(t);
            }
        }
        living = alive;
        bool waiting = false;
        for (State& one : state)
            if (one == PARKED) one = READY, waiting = true;
        return waiting;
    }
};

// `before` is done before every block: shared memory made worthless, for example. Of clusters, `keep` and `bring` are done behind and
// before each stretch of a block, which they are given the number of.
static void launch(dim3 grid, dim3 block, std::function<void()> kernel, std::function<void()> before = [] {}, unsigned cluster = 1,
                   std::function<void(unsigned)> keep = [](unsigned) {}, std::function<void(unsigned)> bring = [](unsigned) {}) {
    gridDim = grid;
    blockDim = block;
    body = &kernel;
    cluster_size = cluster;
    for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
    for (unsigned x = 0; x < grid.x; x += cluster) {
        std::vector<std::unique_ptr<Threads>> blocks;
        for (unsigned b = 0; b < cluster; ++b) blocks.emplace_back(new Threads(block.x * block.y));
        bool waiting = true;
        for (bool first = true; waiting; first = false) {
            waiting = false;
            for (unsigned b = 0; b < cluster; ++b) {
                if (first)
                    before();
                else
                    bring(b);
                waiting |= blocks[b]->run({x + b, y, z}, block);
                if (cluster > 1) keep(b);
            }
        }
    }
}
