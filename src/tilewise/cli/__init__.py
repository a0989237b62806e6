"""The commands, one file each: parse, call, print. `main` finds them by name and loads only the one asked for."""
