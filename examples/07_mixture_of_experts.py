"""A mixture-of-experts layer: router, gather, two grouped products, scatter. Compared with a loop over the experts.

No token is padded or dropped, and the group sizes stay on the device.
"""

try:
    import torch
except ImportError:
    print("this example needs PyTorch: pip install torch")
    raise SystemExit from None

import tilewise as tw

device = "cuda" if torch.cuda.is_available() else "cpu"
dtype = torch.bfloat16 if device == "cuda" else torch.float64
tokens, width, hidden, experts, chosen = (4096, 1024, 1408, 64, 4) if device == "cuda" else (50, 12, 20, 5, 2)


class Experts(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.router = torch.nn.Linear(width, experts, bias=False, dtype=dtype, device=device)
        self.up = torch.nn.Parameter(torch.randn(experts, width, hidden, dtype=dtype, device=device) * width**-0.5)
        self.down = torch.nn.Parameter(torch.randn(experts, hidden, width, dtype=dtype, device=device) * hidden**-0.5)

    def route(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The experts of every token, and their weights."""
        scores, expert = self.router(x).softmax(-1).topk(chosen)
        return expert, scores / scores.sum(-1, keepdim=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        expert, weight = self.route(x)
        order = expert.flatten().argsort(stable=True)
        rows = order // chosen  # the token of each row, expert by expert
        offsets = torch.searchsorted(
            expert.flatten()[order], torch.arange(experts, device=x.device), right=True, out_int32=True
        )
        made = torch.relu(tw.grouped_matmul(x, self.up, offsets, rows=rows))
        made = tw.grouped_matmul(made, self.down, offsets)
        return tw.scatter_rows(made, rows, len(x), weights=weight.flatten()[order])

    def by_a_loop(self, x: torch.Tensor) -> torch.Tensor:
        """The reference."""
        expert, weight = self.route(x)
        out = torch.zeros_like(x)
        for e in range(experts):
            token, which = (expert == e).nonzero(as_tuple=True)
            made = torch.relu(x[token] @ self.up[e]) @ self.down[e]
            out = out.index_add(0, token, made * weight[token, which, None])
        return out


torch.manual_seed(0)
layer = Experts()
x = torch.randn(tokens, width, dtype=dtype, device=device)
found = {}
for name, forward in (("grouped", layer.forward), ("loop", layer.by_a_loop)):
    layer.zero_grad()
    made = forward(x)
    made.square().mean().backward()
    found[name] = [made.detach(), *(p.grad.clone() for p in layer.parameters())]

for what, ours, theirs in zip(("P", "router", "up", "down"), found["grouped"], found["loop"], strict=True):
    apart = float((ours.double() - theirs.double()).norm() / theirs.double().norm())
    print(f"{what:>6}: {apart:.1e} apart from the loop's")
    assert apart < (3e-2 if dtype == torch.bfloat16 else 1e-10), what
print(f"{tokens} tokens, {experts} experts of {width}x{hidden}, {chosen} for each token, on {device}")
