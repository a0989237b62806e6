"""Products of many operands: `einsum` (its words, their order, and each pair as one product), `chain`, `power`."""
