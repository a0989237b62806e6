"""The version of this package, in a file that imports nothing."""

__version__ = "0.1.0.dev0"
