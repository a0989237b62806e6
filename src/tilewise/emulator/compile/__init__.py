"""Compile a kernel's syntax tree to closures that run all lanes at once: a `Program` for `machine/`."""
