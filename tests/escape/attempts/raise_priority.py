"""More important than anybody else."""

import os

from escape import attempt


@attempt
def raise_priority():
    os.nice(-10)
    return "is more important now"
