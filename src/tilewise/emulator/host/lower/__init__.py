"""Lowers the tree of a program to LLVM, with checks of bounds, initialisation and overflow."""
