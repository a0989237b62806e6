"""Built kernels of tilewise, a bundle an arch. tilewise looks here first; `built.json` says what was built."""
