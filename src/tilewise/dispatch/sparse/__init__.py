"""scipy.sparse matrices over any semiring: a cell that is not stored is the semiring's zero."""
