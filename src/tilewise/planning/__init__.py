"""Planning: the choice of a kernel, launchers of plans, kernels compiled ahead of time."""
