"""Whether integers are weights, before sums are made of them."""
