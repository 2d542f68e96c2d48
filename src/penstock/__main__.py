"""``python -m penstock`` is ``penstock``."""

from penstock.cli.main import program

if __name__ == "__main__":
    program()
