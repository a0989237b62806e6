"""The tree of a host program lowered to LLVM, with bounds, initialisation and overflow checked."""
