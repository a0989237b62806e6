"""From a call to its execution: arguments to a Problem, the route it takes, the one cache of calls, execution."""
