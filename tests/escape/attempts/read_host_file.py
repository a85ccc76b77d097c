"""A file that the test made on the host, by its path there."""

from escape import HOST, attempt


@attempt
def read_host_file():
    path = HOST["canary"]
    return open(path, encoding="utf-8").read()
