"""PyTorch: `operator` (torch.library, fake tensors, autograd), `gradients` and `slopes` (its formulas), `choice`
(ours or torch's, by a plan and by `vendor`, the model of torch's kernels), `routed` (that choice in eager torch) and
`compiled` (the same inside torch.compile), and what people call: `linear`, `patch`, `accelerate`."""
