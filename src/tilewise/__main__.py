"""`python -m tilewise` is `tilewise`."""

from tilewise.cli.main import main

main()
