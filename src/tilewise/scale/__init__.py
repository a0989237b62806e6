"""Products larger than memory: a tile of P stays in the small memory while panels of M and N stream through it.

`schedule` chooses the tile and the panels for a memory budget (pure functions); `host` and `card` execute it; `sources`
and `targets` are the matrices in the large memory (arrays, .npy files, Zarr); `journal` records finished tiles, `files`
is the whole job; `dask_product` distributes tiles over a cluster, and `workers` models clusters that need not exist.
"""
