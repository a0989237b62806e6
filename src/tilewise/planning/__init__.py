"""Which kernel runs: the choice, how far its cost model is off, tuned tables, kernels compiled ahead of time."""
