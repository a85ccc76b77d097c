"""The rate of the host's clock; asked, not changed."""

import ctypes

from escape import attempt, call


@attempt
def clock_adjust():
    call("adjtimex", ctypes.create_string_buffer(512))
    return "asked the clock"
