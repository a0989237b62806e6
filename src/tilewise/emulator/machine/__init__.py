"""What a compiled kernel runs on: lanes, memory and its shadow, barriers, atomics, costs, events; and what is found."""
