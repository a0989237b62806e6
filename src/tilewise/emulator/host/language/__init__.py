"""The C++ of host programs: token stream, types, tree."""
