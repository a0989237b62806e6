"""The machine that runs compiled kernels: lanes, memory and its shadow, barriers, atomics, costs, events, findings."""
