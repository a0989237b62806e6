"""On a GPU, where there is one: the host program of the notes in four lines, and the kernels of the ladder."""

import numpy as np

import tilewise as tw

rng = np.random.default_rng(0)
M = rng.standard_normal((1000, 500), np.float32)
N = rng.standard_normal((500, 700), np.float32)

try:
    with tw.to_device(M) as Md, tw.to_device(N) as Nd:  # allocate and copy in; freed at the end of the block
        for kernel in ("naive", "tiled_edges", "coarsened", "register_tiled"):
            with tw.matmul(Md, Nd, kernel=kernel) as Pd:  # launch; the product stays on the GPU
                assert np.allclose(Pd.numpy(), M @ N, atol=1e-3)  # copy out
                print(f"{kernel:<15} right")
except tw.DeviceError as missing:
    print(f"no GPU: {missing}")
