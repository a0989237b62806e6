"""Faults planted in programs of the second draw of `public_files.txt`, written down before they were first run."""

from __future__ import annotations

from dataclasses import replace

from planted_faults import BACK, BARRIER, BOUND, COPY, FIRST, INTO, OUT, RACE, UNSET, Fault, fault

SMALL = f"{OUT}|small-allocation"
FREED = "use-after-free|double-free"


def smaller(faults: list[Fault], line: int, pattern: str, new: str) -> list[Fault]:
    """The same faults in the program with a smaller size."""
    return [replace(one, edits=(*one.edits, (line, pattern, new))) for one in faults]


PROGRAMS = {
    "zhangtaoshan+cuda-tutorials/vector_dot/vector_dot_multiple_block.cu": [
        fault("barrier left out", 25, ".*", "", RACE, 31, "tmp", BARRIER),
        fault("barrier of the loop left out", 33, ".*", "", RACE, 31, "tmp", BARRIER),
        fault("<= for <", 20, "< NUM", "<= NUM", OUT, 22, "a|b|d_a|d_b", BOUND),
        fault("barrier in a branch", 32, ".*", "", "divergent-barrier", 33, "", "out of the branch", (33, ";", "; }")),
        fault("guard of the reduction", 29, "tidx < i", "tidx <= i", f"{OUT}|{RACE}", 31, "tmp"),
        fault("tile too small", 14, "THREADS", "THREADS / 2", OUT, 24, "tmp", BOUND),
        fault("copy direction", 93, "HostToDevice", "DeviceToHost", COPY, 93, "d_a|h_a", "HostToDevice"),
        fault("result not copied", 115, "cudaMemcpy.*", "", UNSET, 119, "h_c", BACK),
        fault("not freed", 140, ".*", "", "leak", 133, "temp_d_c", "cudaFree"),
        fault("freed twice", 149, "d_c", "d_b", FREED + "|wrong-free", 149, "d_b", "once|free"),
        fault("freed before the launch", 124, "{", "{ cudaFree(d_a);", FREED, (22, 125, 126), "a|d_a", "free|last",
              (147, ".*", "")),
        fault("size in bytes of a copy", 93, ", size", ", NUM_INPUT", UNSET, 22, "a|d_a", "sizeof|bytes"),
        fault("host array too short", 84, "BLOCKS", "1", SMALL, (84, 115), "h_c", "bytes|sizeof|length"),
        fault("too many threads for the tile", 135, "blocksPerGrid", "threadsPerBlock", OUT, 51, "tmp|c_temp|d_c",
              BOUND),
        fault("part of the tile without values", 24, "tmp", "if (tidx < 64) tmp", UNSET, 31, "tmp",
              "load or fill"),
        fault("cudaFree for free", 144, "free", "cudaFree", "wrong-free", 144, "h_a", "with free|: free"),
        fault("the host reads the card's memory", 119, "h_c", "d_c", "device-pointer-on-the-host", 119, "d_c",
              "cudaMemcpy"),
        fault("the kernel gets a host pointer", 126, "d_a", "h_a", "host-pointer-on-the-device", (22, 125, 126),
              "a|h_a", "cudaMalloc"),
        fault("sum of all blocks", 39, r"c_temp\[bidx\] =", "c_temp[0] +=", RACE, 39, "c_temp|d_c", "atomicAdd"),
        fault("2048 threads", 8, "128", "2048", "launch", (108, 125), "", "1024"),
    ],
    "CarterMcClellan+Parallel-Programming/nvidia-cuda-fundamentals/part_1/10_matrix_multiply/matrix_multiply.cu": [
        fault("no wait for managed memory", 72, "cuda.*", "", "not-synchronised", (35, 81), "a|b|c_gpu", "Synchronize"),
        fault("bound of the columns", 10, " && col < N", "", OUT, (14, 15), "a|b|c|c_gpu", BOUND),
        fault("malloc without sizeof", 44, r" \* sizeof \(int\)", "", SMALL, (47, 48, 56, 57), "a|b", "sizeof|length"),
        fault("<= for <", 13, "< N", "<= N", OUT, 14, "a|b", BOUND),
        fault("sum without a value", 11, " = 0", "", UNSET, (14, 15), "val", FIRST),
        fault("all columns store to one cell", 15, r" \+ col", "", RACE, 15, "c|c_gpu"),
        fault("freed twice", 92, r"\( c_cpu \)", "( a )", FREED + "|wrong-free", 92, "a", "once|free"),
        fault("freed before the host reads", 72, ";", "; cudaFree(b);", FREED, (34, 35, 75), "b", "free|last",
              (91, r"cudaFree\(b\);", "")),
    ],
    "szymonm+pwir-cuda-labs/lab2/matrixMulNaive.cu": smaller([
        fault("grid of threads instead of blocks", 103, "DIM / threads.x", "DIM", OUT, (45, 49), "A|C|d_A|d_C", BOUND),
        fault("malloc without sizeof", 92, "matrix_mem_size", "MATRIX_DIM * MATRIX_DIM", SMALL, (45, 92, 97), "A|d_A",
              "sizeof|length|bytes"),
        fault("input not copied", 99, "cuda.*", "", UNSET, 45, "B|d_B", INTO),
        fault("copy turned round", 115, "h_C, d_C", "d_C, h_C", COPY, 115, "h_C|d_C"),
        fault("result not copied", 115, "cuda.*", "", UNSET, 127, "h_C", BACK),
        fault("grid of 0 blocks", 103, "MATRIX_DIM / threads.x", "MATRIX_DIM / 512", "launch", 109, "", "grid|block"),
        fault("4096 threads", 102, "BLOCK_SIZE, BLOCK_SIZE", "64, 64", "launch", 109, "", "1024"),
        fault("not freed", 142, ".*", "", "leak", 94, "d_C", "cudaFree"),
        fault("sum without a value", 43, " = 0.0", "", UNSET, (45, 49), "res", FIRST),
        fault("<= for < on the host", 62, "< MATRIX", "<= MATRIX", OUT, 63, "A|B|h_A|h_B", "index|length"),
        fault("rows too long", 21, r"\* MATRIX_DIM", "* (MATRIX_DIM + 1)", OUT, (45, 49), "A|B|C|d_A|d_B|d_C", BOUND),
        fault("format of another type", 134, "%s", "%d", "format", 134, ""),
    ], 19, "256", "64"),
    "rashiqul+CUDA_Practice/src/add_two_vectors/add_two_vectors.cu": [
        fault("size in bytes of a copy", 43, r" \* sizeof\(int\)", "", UNSET, 15, "d_A", "sizeof|bytes"),
        fault("never allocated", 40, "cudaMalloc.*", "", UNSET + "|null-pointer|" + OUT, (15, 40, 70, 79), "d_C"),
        fault("grid and block exchanged", 79, "BLOCK_SIZE, NUM_OF_THREADS", "NUM_OF_THREADS, BLOCK_SIZE",
              RACE + "|uncovered", (15, 79), "d_C"),
        fault("1025 threads", 79, "THREADS>", "THREADS + 1>", "launch", 79, "", "1024"),
        fault("<= for < on the host", 27, "<", "<=", OUT, (29, 30), "h_A|h_B", "index|length"),
        fault("freed twice", 97, "h_B", "h_A", FREED, 97, "h_A", "once|free"),
        fault("freed before the copy", 85, "cudaMemcpy", "cudaFree(d_C); cudaMemcpy", FREED, 85, "d_C", "free|last",
              (93, ".*", "")),
        fault("stream destroyed before the launch", 79, "add_two_vectors<<<BLOCK_SIZE, NUM_OF_THREADS>>>",
              "cudaStream_t s; cudaStreamCreate(&s); cudaStreamDestroy(s); "
              "add_two_vectors<<<BLOCK_SIZE, NUM_OF_THREADS, 0, s>>>", FREED + "|argument|launch", 79, "s|stream"),
    ],
    "abaksy+cuda-examples/vecadd/vecadd.cu": [
        fault("one block too many", 46, "N, 1", "N + 1, 1", OUT, 12, "a|b|c|d_a|d_b|d_c", BOUND),
        fault("allocation without sizeof", 23, r"\*sizeof\(int\)", "", SMALL, (12, 32, 33, 34), "a|b|c|d_a|d_b|d_c",
              "sizeof|length|bytes"),
        fault("threadIdx for blockIdx", 11, "blockIdx", "threadIdx", RACE + "|uncovered", (12, 46), "c|d_c"),
    ],
    "anmolpanda+CUDA_programs/memory/memory.cu": [
        fault("barrier left out", 28, ".*", "", RACE, 31, "sh_arr", BARRIER),
        fault("tile too small", 22, "128", "64", OUT, 26, "sh_arr", BOUND),
        fault("<= for <", 31, "i < index", "i <= index + 1", OUT, 31, "sh_arr", BOUND),
        fault("copy direction", 57, "DeviceToHost", "HostToDevice", COPY, 57, "h_arr|d_arr", "DeviceToHost"),
    ],
    "goel42+ECE277_GPU-Programming/1 Books/professional-cuda-c-programming-master/solutions/chapter04/"
    "globalVariable1.cu": [
        fault("more threads than elements", 34, "5", "8", OUT, 16, "devData", BOUND),
        fault("copy longer than its source", 29, "5 ", "8 ", f"{OUT}|{COPY}", 29, "values|devData",
              "bytes|size|length"),
        fault("symbol not copied", 29, "CHECK.*", "", UNSET, 16, "devData", "cudaMemcpyToSymbol"),
    ],
    "Parallel-Systems-aka-Uniwa+CUDA-Examples/Theory/cu_vecadd_examples/vecadd1.cu": [
        fault("grid rounded down", 71, r"\(int\)ceil\(\(float\)n/blockSize\)", "n/blockSize",
              UNSET + "|uncovered", (78, 84, 89), "c|h_c|d_c", "grid"),
        fault("event not recorded", 80, "cuda.*", "", "argument|not-synchronised", (81, 92), "stop", "Record"),
        fault("sizes overflow int", 36, r"n\*sizeof\(double\)", "n*n*8", "overflow|index-overflow", 36, "",
              "long|size_t"),
    ],
    "CUDA-Tutorial+CodeSamples/06_MemoryBasics/src/main.cu": [
        fault("dynamic shared memory too short", 122, "2 . sizeof", "sizeof", OUT, (29, 33), "sFoo", ""),
        fault("no order within the warp", 31, "__.*", "", RACE, (29, 33), "sFoo", "__sync"),
        fault("no dynamic shared memory", 122, ", 2 . sizeof.int.", "", OUT, (29, 33), "sFoo", ""),
        fault("copy direction", 102, "DeviceToHost", "HostToDevice", COPY, 102, "out|dOutPtr", "DeviceToHost"),
    ],
    "zhangtaoshan+cuda-tutorials/vector_dot/vector_dot_atomic.cu": [
        fault("sum without atomicAdd", 29, r"atomicAdd\(c, temp\)", "*c += temp", RACE, 29, "c|d_c", "atomicAdd"),
    ],
}  # fmt: skip
