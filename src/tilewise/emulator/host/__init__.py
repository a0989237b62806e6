"""The host program around the kernels: compiled to machine code and run in a sandboxed process."""
