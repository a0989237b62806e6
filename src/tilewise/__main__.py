"""`tilewise` and `python -m tilewise`: an interrupt ends in one word, also while the rest is still being imported."""

import sys


def main() -> None:
    try:
        from tilewise.cli.main import main as commands

        commands()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
