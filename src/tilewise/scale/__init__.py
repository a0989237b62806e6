"""Every size: the phases of the notes one level up. A tile of P stays in the small memory, panels of M and N stream by.

`schedule` chooses the tile and the panels for a budget, purely; `host` and `card` walk them; `sources` and `targets`
are what lies in the large memory (arrays, .npy files, Zarr); `journal` remembers finished tiles, `files` is the whole
job; `dask_product` spreads tiles over a cluster, and `workers` plans past the machines at hand.
"""
