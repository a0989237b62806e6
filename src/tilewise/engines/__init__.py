"""What executes a Plan: reference, cuda (and later cpu, simt)."""
