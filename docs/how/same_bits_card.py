"""`reproducible=` on a card: GPU times beside the default and torch.mm, for same-bits.md.

`python docs/how/same_bits_card.py [everywhere|batch]`: both by default. Times are those of CUDA graphs; the weights of
`batch` are several in turn, so that they do not stay in L2.
"""

import math
import sys

import torch

import tilewise as tw

LARGE = (
    (2048, 2048, 2048), (4096, 4096, 4096), (8192, 2048, 8192), (4096, 512, 4096), (4096, 16384, 4096),
    (4097, 4097, 4097), (3000, 1000, 5000), (2816, 3072, 3072), (1536, 8192, 2816),
)  # fmt: skip
WEIGHTS = (
    (4096, 4096), (4096, 14336), (14336, 4096), (8192, 8192), (5120, 13824), (4096, 1024), (3584, 18944), (4097, 4097),
)  # fmt: skip
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
IN_L2 = 3e8  # bytes of weights in turn


def microseconds(work, calls):
    """Of one call, by a graph of `calls`."""
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.stream(stream):
        work()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(calls):
            work()
    graph.replay()
    took = []
    for _ in range(5):
        start, stop = torch.cuda.Event(True), torch.cuda.Event(True)
        start.record()
        graph.replay()
        stop.record()
        torch.cuda.synchronize()
        took.append(start.elapsed_time(stop) * 1e3 / calls)
    return sorted(took)[2]


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def everywhere():
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        found = []
        for m, k, n in LARGE:
            M, N = torch.randn(m, k, device="cuda").to(dtype), torch.randn(k, n, device="cuda").to(dtype)
            P = torch.empty(m, n, dtype=dtype, device="cuda")
            usual, defined = (
                microseconds(lambda how=how, M=M, N=N, P=P: tw.matmul(M, N, out=P, **how), 3)
                for how in ({"precision": "ieee"}, {"reproducible": "everywhere"})
            )
            found.append(usual / defined)
            print(f"{dtype} {m}x{k}x{n}: {usual:.1f} and {defined:.1f} us, {found[-1]:.2f}", flush=True)
        print(f"{dtype}: mean {mean(found):.2f}, lowest {min(found):.2f}")


def batch():
    for k, n in WEIGHTS:
        weights = [torch.randn(k, n, device="cuda").bfloat16() for _ in range(max(1, int(IN_L2 / (2 * k * n))))]
        for m in ROWS:
            M, P = torch.randn(m, k, device="cuda").bfloat16(), torch.empty(m, n, dtype=torch.bfloat16, device="cuda")

            def each(multiply, M=M, P=P, weights=weights):
                return microseconds(lambda: [multiply(M, N, out=P) for N in weights], 2) / len(weights)

            usual, theirs = each(tw.matmul), each(torch.mm)
            ours = each(lambda M, N, out: tw.matmul(M, N, out=out, reproducible="batch"))
            print(f"{m}x{k}x{n}: {ours:.1f} us; default {usual / ours:.2f}, torch.mm {theirs / ours:.2f}", flush=True)


for part in sys.argv[1:] or ("everywhere", "batch"):
    {"everywhere": everywhere, "batch": batch}[part]()
