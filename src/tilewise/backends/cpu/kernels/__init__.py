"""Ways to multiply on a CPU, one folder each: `model` (what it takes, when, how it is cut) and `text` (its LLVM)."""
