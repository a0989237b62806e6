"""Plans on a card: `device` describes it, `compile` makes machine code of text, `launcher` runs a plan on arrays that
are already there, `host` is the whole program of the notes for arrays that are not, `timing` measures with events."""
