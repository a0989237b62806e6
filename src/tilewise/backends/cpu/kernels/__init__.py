"""Products on a CPU, a folder per algorithm: `model` (what it takes, when it is chosen, its tasks) and `text` (its LLVM
IR)."""
