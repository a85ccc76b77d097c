"""Entries of the processor's tables."""

import ctypes

from escape import attempt, call


@attempt
def segment_table():
    call("modify_ldt", 0, ctypes.create_string_buffer(64), 64)
    return "read the table"
