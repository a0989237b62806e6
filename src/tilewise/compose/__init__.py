"""What is made of products: closures and paths, contractions, groups of rows, sparse and structured operands."""
