"""Faults planted in programs of the third draw of `public_files.txt`, written down before they were first run."""

from __future__ import annotations

from planted_faults import BACK, BARRIER, BOUND, COPY, FIRST, OUT, RACE, UNSET, fault
from planted_faults_second import FREED, SMALL

PROGRAMS = {
    "alfred316+CudaProjects/tiledMatrixMultiplication.cu": [
        fault("barrier after the sums left out", 45, ".*", "", RACE, (30, 33, 36, 38, 43), "sharedMatA|sharedMatB",
              BARRIER),
        fault("guard of the rows alone", 49, " && Col < cCols", "", OUT, 50, "matC|dMatC", BOUND,
              (66, "512", "500")),
        fault("result never copied to the array that is printed", 108, "hMatC", "hMatA", UNSET, 113, "hMatC", BACK),
    ],
    "AvirupChakraborty-2212+CUDA-Programming/matmul_register_tiled.cu": [
        fault("no bytes for extern __shared__", 102, ", shared_size", "", OUT, (32, 36, 46), "s|sA", "third|bytes"),
        fault("index of another tile", 46, r"\* T \+ k", "* T + k * T", OUT, 46, "s|sA", BOUND + "|third|bytes"),
        fault("barrier between load and use left out", 39, ".*", "", RACE, 46, "s|sA", BARRIER),
        fault("cudaFreeHost for cudaFree", 111, "cudaFree", "cudaFreeHost", "wrong-free", 111, "d_A", "cudaFree"),
    ],
    "lmzuccarelli+cuda-kernels/ex-15/src/atomic_exch.cu": [
        fault("all threads exchange with one cell", 8, r"data\[idx\]", "data[0]", RACE, 8, "data|d_data"),
        fault("1024 elements in a float", 14, r" \* sizeof\(float\)", "", SMALL, (15, 18, 22, 30), "h_data|d_data",
              "sizeof|length|bytes"),
        fault("the copy goes to the wrong place", 23, "d_data, h_data", "h_data, d_data", COPY, 23, "d_data|h_data",
              "Device"),
        fault("the card's memory printed", 33, "h_data", "d_data", "device-pointer-on-the-host", 33, "d_data",
              "cudaMemcpy"),
    ],
    "MarjordCpz+CUDA-Learning/code/Reduce.cu": [
        fault("no wait before the host reads", 70, "cuda.*", "", "not-synchronised", (87, 90), "Result",
              "Synchronize", (72, ".*", ""), (79, ".*", "")),
        fault("barrier in the branch", 29, r"\}", "", "divergent-barrier", 30, "", "out of the branch",
              (30, ";.*", "; }")),
        fault("sum without atomic", 39, r"atomicAdd\(out,Smem\[0\]\)", "out[0] += Smem[0]", RACE, 39, "out|Result",
              "atomicAdd"),
        fault("one element too many", 18, "< count", "<= count", OUT, 19, "in|Vec_in", BOUND),
    ],
    "sarimahsan+cuda-kernel/02-shared-memory/02-tiled-matrix-multiplication/tiled_matrix_multiplication.cu": [
        fault("grid rounded down", 51, "1024", "100", "uncovered", (78, 82), "C|dC", "round the grid up",
              (84, r"hC\[0\]", "hC[N * N - 1]")),
        fault("delete of an array", 91, r"\[\]", "", "wrong-free", 91, "hB", r"delete\[\]"),
        fault("32 x 64 threads", 4, "16", "64", "launch", (6, 9, 78), "", "1024|smaller tile"),
        fault("input copied before it is filled", 64, "1.0f", "hB[i]", UNSET, 64, "hB", "values|first"),
    ],
    "sirineamrane+cuda-exercices/matmul1.cu": [
        fault("sum without a value", 14, " = 0.0f", "", UNSET, (33, 40), "sum", FIRST),
        fault("row and column exchanged", 40, r"row\*n \+ col", "col*n + row + 1", OUT, 40, "C|d_C", BOUND),
        fault("freed twice", 73, "d_C", "d_B", FREED, 73, "d_B", "once"),
        fault("not freed", 72, ".*", "", "leak", 50, "d_B", "cudaFree"),
    ],
    "sarimahsan+cuda-kernel/01-basic-cuda/02-matrix-multiplication/matrix_multiplication.cu": [
        fault("the host array in the launch", 54, "d_A", "h_A", "host-pointer-on-the-device", (17, 54), "A|h_A",
              "cudaMalloc"),
        fault("index of the host", 63, "j < N", "j <= N", OUT, 64, "h_C", "index"),
        fault("freed before the copy", 56, "cuda.*", "cudaFree(d_C);", FREED, 59, "d_C", "free|last",
              (71, ".*", "")),
    ],
    "wshain+cuda-learn/shared-memory/transpose.cu": [
        fault("barrier left out", 55, ".*", "", RACE, 60, "tile", BARRIER),
        fault("rows of a block left out", 59, "TILE_DIM; j", "TILE_DIM / 2; j", "uncovered", (103, 113),
              "d_odata", "guard|index|thread"),
    ],
    "xlhu19+cuda_examples/cuda_memory/uma.cu": [
        fault("read while the kernel runs", 78, ".*", "", "not-synchronised", (86, 90), "g_F|g_C", "Synchronize"),
        fault("one vector not filled", 65, ".*", "", UNSET, 17, "A|g_D", "values|memset|copied"),
        fault("past the end of the vector", 85, "< nElem", "<= nElem", OUT, (86, 90), "g_C|g_F", "index"),
    ],
    "sunjiabin17+cuda-example/implementations/04_convolution/02_1d_conv_constant_memory.cu": [
        fault("the mask is never copied", 61, ".*", "", UNSET, 18, "d_mask", "cudaMemcpyToSymbol"),
        fault("edge not looked at", 17, "start . i >= 0 && ", "", OUT, 18, "input|d_input", BOUND + "|index"),
        fault("grid of threads", 67, "GRID, THREADS", "THREADS, GRID", "launch", 67, "", "1024"),
    ],
}  # fmt: skip
