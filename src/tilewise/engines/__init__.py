"""What executes a Plan. Each engine is a folder; `reference` is the definition all others are held against."""
