"""Epilogues of small products as native code."""
