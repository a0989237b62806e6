"""A kernel's memory accesses, races and barriers proved for every size, or refuted by the smallest that fails."""
