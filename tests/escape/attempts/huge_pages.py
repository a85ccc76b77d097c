"""Huge pages; without a pool the kernel says ENOMEM as well."""

from escape import attempt, call


@attempt
def huge_pages():
    call("mmap", 0, 2 << 20, 3, 0x40022, -1, 0)
    return "has a huge page"
