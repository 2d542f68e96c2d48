"""``python -m penstock_studies.jit``: section VI of the paper on this machine."""

from __future__ import annotations

import argparse

from penstock_studies.jit import section_vi


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m penstock_studies.jit",
        description=section_vi.ABOUT,
        epilog="example: python -m penstock_studies.jit --quick --figure 10",
    )
    section_vi.add_arguments(parser)
    section_vi.run(parser.parse_args())


if __name__ == "__main__":
    main()
