"""Files as text: decoding, tokens, the preprocessor, literals."""
