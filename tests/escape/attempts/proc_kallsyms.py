"""The kernel's symbols."""

import os

from escape import attempt


@attempt
def proc_kallsyms():
    os.stat("/proc/kallsyms")
    return "kallsyms is there"
