"""What runs a kernel: the machine and its compiler, threads, scratch memory."""
