"""Products of several operands, written with `tw.matmul`: einsum, chains, powers."""
