"""The operating system as tilewise needs it: files, locks, outputs and memory, with an implementation a system."""
