"""What a program means: types resolved, templates matched, constants known before running, layouts."""
