"""`python -m pgflow_stepq.worker` runs the command without the other commands of the package."""

import sys

from pgflow_stepq.worker.command import main

sys.exit(main())
