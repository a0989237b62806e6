"""Plain values that everything else speaks of: shapes, problem, options, plan, machine, epilogue, recipe."""
