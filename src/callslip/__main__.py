"""`python -m callslip`: the command line."""

from __future__ import annotations

from callslip.cli import main

if __name__ == "__main__":
    main()
