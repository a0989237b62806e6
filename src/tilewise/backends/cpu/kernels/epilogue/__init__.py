"""What becomes of a small product before it is stored, in machine code."""
