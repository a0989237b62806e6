"""Plain values that all other packages use: shapes, problem, options, plan, machine, epilogue, recipe."""
