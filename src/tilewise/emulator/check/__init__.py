"""From a file to a verdict: roles of parameters, the launch, the run, messages and hints."""
