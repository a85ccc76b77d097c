"""python -m glovebox: the program glovebox, with the arguments that follow."""

import os
import sys

from .errors import UnavailableException
from .server import program

try:
    found = program()
except UnavailableException as error:
    sys.exit(f"glovebox: {error.message}")
os.execv(found, ["glovebox", *sys.argv[1:]])
