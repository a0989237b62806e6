"""The commands, one file each: parse, call, print. `main` finds them by name and imports only that one."""
