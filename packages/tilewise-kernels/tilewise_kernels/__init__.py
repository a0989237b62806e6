"""Built kernels of tilewise, an archive an arch. tilewise looks here first; `built.json` says what was built."""
