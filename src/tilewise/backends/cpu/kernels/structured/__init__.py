"""Products of structured values: fields lie apart, a tile of P keeps all fields of its cells in registers."""
