"""One launch of a rendered kernel as a CUDA program, whose operands are small integers, for the emulator."""

from __future__ import annotations

import numpy as np

from tilewise.core.recipe import Zero
from tilewise.kernels.keys import text_of

MAIN = r"""
#include <cstdio>
#include <cstdlib>
static void* copied(const char* name, long bytes) {
  unsigned char *held = (unsigned char*)malloc(bytes), *there;
  FILE* file = fopen(name, "rb");
  if (!file || fread(held, 1, bytes, file) != bytes) exit(2);
  fclose(file);
  cudaMalloc(&there, bytes);
  cudaMemcpy(there, held, bytes, cudaMemcpyHostToDevice);
  free(held);
  return there;
}
int main() {
  %(operands)s
  %(arguments)s
  void* arguments[] = {%(addresses)s};
  cudaFuncSetAttribute(%(kernel)s, cudaFuncAttributeMaxDynamicSharedMemorySize, %(shared)d);
  cudaLaunchKernel((void*)%(kernel)s, dim3(%(grid)s), dim3(%(block)s), arguments, %(shared)d, 0);
  if (cudaDeviceSynchronize() != cudaSuccess) return 3;
  unsigned char* made = (unsigned char*)malloc(%(bytes)d);
  cudaMemcpy(made, P, %(bytes)d, cudaMemcpyDeviceToHost);
  FILE* file = fopen("made.bin", "wb");
  fwrite(made, 1, %(bytes)d, file);
  fclose(file);
  free(made);
  %(freed)s
}
"""


def program(recipe, folder, **operands):
    """The text, its operands' bytes written beside it; the last one is P, which it writes to made.bin."""
    (step,) = recipe.steps
    assert not isinstance(step, Zero)
    assert not recipe.scratch_bytes
    lines, given, addresses = [], [], []
    for name, array in operands.items():
        (folder / f"{name}.bin").write_bytes(array.tobytes())
        lines.append(f'unsigned char* {name} = (unsigned char*)copied("{name}.bin", {array.nbytes});')
    for i, argument in enumerate(step.arguments):
        data = ", ".join(map(str, argument.data))
        given.append(f"alignas(16) unsigned char a{i}[] = {{{data}}};")
        given += [f"*(unsigned char**)(a{i} + {at}) = {to.base} + {to.offset};" for at, to in argument.holes]
        addresses.append(f"a{i}")
    more = {
        "operands": "\n  ".join(lines), "arguments": "\n  ".join(given), "addresses": ", ".join(addresses),
        "kernel": step.name, "shared": step.shared_bytes, "grid": ", ".join(map(str, step.grid)),
        "block": ", ".join(map(str, step.block)), "bytes": operands["P"].nbytes,
        "freed": " ".join(f"cudaFree({name});" for name in operands),
    }  # fmt: skip
    return text_of(step.source) + MAIN % more


def made(folder, like):
    return np.frombuffer((folder / "made.bin").read_bytes(), like.dtype).reshape(like.shape)
