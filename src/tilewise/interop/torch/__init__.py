"""PyTorch: `operator` (torch.library, fake tensors, autograd), `gradients` and `slopes` (its formulas), `linear`,
`accelerate` (routes a program's own products) and `vendor` (what those would cost without us)."""
