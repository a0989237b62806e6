"""The check that integer operands of min_plus and max_plus are within the range of weights."""
