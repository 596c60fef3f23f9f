"""`python -m reports`: what is here, what is asked, what was answered."""

from __future__ import annotations

import sys

from reports.verbs import main

if __name__ == "__main__":
    sys.exit(main())
