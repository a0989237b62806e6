"""A kernel's syntax tree to closures over all lanes at once: a `Program` for the machine."""
