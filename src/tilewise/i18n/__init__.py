"""Messages in every language the pages and commands have."""
