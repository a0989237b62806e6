"""Products of structured values: fields are separate arrays; a tile of P keeps all fields of its cells in registers."""
