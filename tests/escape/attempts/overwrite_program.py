"""Writes into the interpreter that other sandboxes run as well."""

import os

from escape import attempt


@attempt
def overwrite_program():
    os.open("/usr/bin/env", os.O_WRONLY)
    return "opened a program of the template for writing"
