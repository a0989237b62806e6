"""The program around the kernels: its launches, and the values it gives them."""
