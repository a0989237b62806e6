"""PyTorch: `operator` (torch.library, fake tensors, autograd), `function` and `gradients` (derivatives), `choice` (ours
or torch's, by a plan and by `vendor`, the cost model of torch's kernels), `routed` (that choice in eager torch) and
`compiled` (the same inside torch.compile), and what users call: `linear`, `patch`, `accelerate`."""
