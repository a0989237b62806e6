"""Plans on a card: `device` describes it, `compile` compiles texts, `launcher` runs a plan on device arrays, `host` is
the notes' host program for arrays in host memory, `timing` measures with events."""
