// Everything.
