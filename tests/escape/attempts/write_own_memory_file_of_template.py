"""Writes a private mapping of a template file through /proc/self/mem; the file must stay as it was."""

import mmap
import os
import ctypes

from escape import attempt, stopped


@attempt
def write_own_memory_file_of_template():
    before = open("/etc/passwd", "rb").read()
    file = os.open("/etc/passwd", os.O_RDONLY)
    page = mmap.mmap(file, len(before), flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        memory.seek(address)
        memory.write(b"escape:")
    return "the file changed" if open("/etc/passwd", "rb").read() != before else stopped("bounded")
