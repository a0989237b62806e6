// All headers.
