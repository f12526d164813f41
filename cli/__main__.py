"""``python -m vlmend.cli`` is the ``vlmend`` command."""

from __future__ import annotations

import sys

from vlmend.cli.main import main

sys.exit(main())
