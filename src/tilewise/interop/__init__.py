"""Other libraries' own backends: NetworkX."""
