"""Plans on a card: `device` describes it, `compile` turns text into machine code, `launch` runs a plan on arrays that
are already there, `host` is the whole program of the notes for arrays that are not, `timing` measures with events."""
