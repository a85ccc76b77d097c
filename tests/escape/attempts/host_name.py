"""The name of the host."""

import os

from escape import attempt, stopped


@attempt
def host_name():
    name = os.uname().nodename
    return f"sees {name}" if name != "glovebox" else stopped("bounded")
