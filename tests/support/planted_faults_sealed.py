"""Faults planted in programs of `public_files_sealed.txt`, written down before they were first run.

Of 38, three were no faults as written: an edit inside a comment and a barrier whose condition is the same for a whole
block were corrected after that run, grid and block exchanged (the same threads) was left out."""

from __future__ import annotations

from planted_faults import BARRIER, BOUND, COPY, FIRST, INTO, OUT, RACE, UNSET, WAIT, fault
from planted_faults_second import FREED, SMALL

SMALLER = ((5, "1024", "64"), (53, "32, 32", "2, 2"), (67, r"c\[451 \* N \+ 451\]", "c[45 * N + 45]"))
COPIED = " cudaMemcpy(h_C, d_C, NELEMS*sizeof(float), cudaMemcpyDeviceToHost);"

PROGRAMS = {
    "EPCCed+archer-gpu-course/one-day/exercises/cuda-reduce/solution/vector-product.cu": [
        fault("barrier between store and load left out", 40, "__.*", "", RACE, 48, "blockab", BARRIER),
        fault("sum of all blocks without atomicAdd", 52, r"atomicAdd\(result, bs\)", "*result += bs", RACE, 52,
              "result|sum", "atomicAdd"),
        fault("sum is not cleared", 109, "cudaMemset.*", "", UNSET, 52, "result|sum", f"{INTO}|emset"),
        fault("one block too many", 115, "1 \\+ \\(ARRAY_SIZE - 1\\)", "1 + ARRAY_SIZE", OUT, 38, "a|b|d_a|d_b", BOUND),
        fault("shared cell without a value", 37, "blockab.*", "", UNSET, (38, 48), "blockab", "value|before"),
        fault("loop over one thread too many", 47, "< blockDim.x", "<= blockDim.x", OUT, 48, "blockab", BOUND),
    ],
    "EnriqueBDeL+Clases-CUDA-Programacion-Paralela-en-C-/Clase dim3.cu": [
        fault("no guard and a rounded grid", 8, "idx < N", "true", OUT, 9, "A|B|C|d_A|d_B|d_C", BOUND,
              (14, "16", "18")),
        fault("grid rounded down", 35, r"\(N \+ 3\) / 4", "N / 4", f"{UNSET}|uncovered", (37, 39, 55), "C|d_C|h_C",
              "round|grid|covers", (14, "16", "18")),
        fault("second input never copied", 32, "cudaMemcpy.*", "", UNSET, 9, "B|d_B", INTO),
        fault("copy of elements for bytes", 31, "size", "N", UNSET, 9, "A|d_A", "sizeof|of its 64"),
        fault("address of the pointer copied", 39, "d_C, size", "&d_C, size", f"{COPY}|{OUT}", 39, "d_C", ""),
    ],
    "roy-cruz+TAC-HEP_GPU-Course/assignment2/mult_matrix.cu": [
        fault("or for and in the guard", 41, "&&", "||", f"{OUT}|{RACE}", (45, 48), "A|B|C|d_A|d_B|d_C", "",
              (4, "256", "100")),
        fault("32 x 64 threads", 98, "16, 16", "32, 64", "launch", 106, "", "1024"),
        fault("result copied before the kernel", 113, "cudaMemcpy.*", "", "not-copied-back|uninitialised-read",
              (106, 94, 55), "C|d_C|h_C", "", (95, "$", COPIED)),
        fault("device pointer printed by the host", 122, "h_C", "d_C", "device-pointer-on-the-host", (55, 122),
              "d_C|arr",
              "cudaMemcpy"),
        fault("wrong free", 145, "cudaFree", "free", "wrong-free", 145, "d_A", "cudaFree", (142, "free", "delete[]"),
              (143, "free", "delete[]"), (144, "free", "delete[]")),
    ],
    "blueternalness+CUDA-matrix-multiplication/p2_memory.cu": [
        fault("barrier before the next phase left out", 26, "__.*", "", RACE, (19, 20, 24), "subTileA|subTileB",
              BARRIER,
              *SMALLER),
        fault("tile of the wrong shape", 10, r"\[TILE_WIDTH\]\[TILE_WIDTH\]", "[TILE_WIDTH][TILE_WIDTH / 2]", OUT,
              (20, 24),
              "subTileB", f"{BOUND}|index", *SMALLER),
        fault("barrier in a branch", 22, "__", "if (ty < 16) __", "divergent-barrier", 22, "", "branch|every thread",
              *SMALLER),
        fault("not enough bytes in malloc", 38, r"malloc\(size\)", "malloc(N * N)", f"{SMALL}|{COPY}", (38, 64, 67),
              "c",
              "sizeof|length|bytes"),
        fault("grid of a quarter", 53, "32, 32", "16, 16", f"{UNSET}|uncovered", (58, 64, 67), "c|gpu_c",
              "grid|covers|threads",
              (67, "451", "851"), (67, r"\+ 451", "+ 851")),
    ],
    "bryanoliveira+cuda-exercises/02.managing-accelerated-app-memory/04.challenge.saxpy.cu": [
        fault("no wait before the host reads", 76, "checkCuda.*", "", "not-synchronised", 80, "c", WAIT),
        fault("stride of the block alone", 41, "gridDim.x \\* blockDim.x", "blockDim.x", RACE, 44, "c", "", (4,
              "2048 \\* 2048", "64 * 1024")),
        fault("<= for <", 43, "< N", "<= N", OUT, 44, "a|b|c", BOUND),
        fault("freed before it is printed", 76, "$", " cudaFree(c);", FREED, (80, 86), "c", "last|once|free"),
        fault("input without values", 21, "b.*", "", UNSET, 44, "b", ""),
    ],
    "RioKKH+GPGPU_example/GPGPU_programming/07_reduction0.cu": [
        fault("all threads sum to one cell", 5, r"\(1\)", "(64)", RACE, (13, 16), "odata", "atomicAdd|one thread"),
        fault("elements for bytes in cudaMalloc", 37, "Nbytes", "N", SMALL, (37, 43, 16), "idata",
              "sizeof|length|bytes"),
        fault("copy arguments exchanged", 49, "&sum, odata", "odata, &sum", COPY, 49, "sum|odata", ""),
        fault("freed before the copy", 42, r"init\(host_idata\);", "free(host_idata);", FREED, (43, 44),
              "host_idata", "last|once|free"),
        fault("sum without a start", 13, "odata.*", "", UNSET, 16, "odata", f"{INTO}|emset|{FIRST}"),
    ],
    "tomros766+cuda-lab/wektor_podzielny.cu": [
        fault("too few blocks", 40, "N/M", "N/M - 1", f"{UNSET}|uncovered", (40, 42, 46), "c|d_c",
              "grid|covers|threads"),
        fault("host array passed to the kernel", 40, "d_b", "b", "host-pointer-on-the-device", (11, 40), "b",
              "cudaM|d_b"),
        fault("direction of the copy", 37, "HostToDevice", "DeviceToHost", COPY, 37, "a|d_a", "HostToDevice"),
        fault("host loop one too far", 44, "<N", "<=N", OUT, 46, "a|b|c", BOUND),
        fault("not freed", 51, r"cudaFree\(d_b\);", "", "leak", 30, "d_b", "cudaFree"),
        fault("neighbour read without a guard", 11, r"b\[index\]", "b[index + 1]", OUT, 11, "b|d_b", f"{BOUND}|index"),
    ],
}  # fmt: skip
