"""What executes a Plan, a folder each; `reference` is the definition that all others are held against."""
