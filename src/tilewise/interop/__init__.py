"""Where people's arrays already are: what needs a framework itself, and so is imported only with it."""
