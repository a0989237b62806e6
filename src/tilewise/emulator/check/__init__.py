"""From a file to a verdict: what the parameters mean, which launch, the run, and what is said about it."""
