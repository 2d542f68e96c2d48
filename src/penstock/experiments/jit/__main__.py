"""``python -m penstock.experiments.jit``: section VI of the paper on this machine."""

from __future__ import annotations

import argparse

from penstock.experiments.jit import section_vi


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m penstock.experiments.jit",
        description=section_vi.ABOUT,
        epilog="example: python -m penstock.experiments.jit --quick --figure 10",
    )
    section_vi.add_arguments(parser)
    section_vi.run(parser.parse_args())


if __name__ == "__main__":
    main()
