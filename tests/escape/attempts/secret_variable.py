"""An environment variable of the process that started glovebox."""

import os

from escape import HOST, attempt, stopped


@attempt
def secret_variable():
    found = [name for name, value in os.environ.items() if HOST["secret"] in name + value]
    return f"sees {found}" if found else stopped("bounded")
