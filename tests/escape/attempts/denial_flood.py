"""Ten thousand refused calls: they stay refused, and the report of them is bounded."""

from escape import attempt, call, stopped


@attempt
def denial_flood():
    ...
    codes = set()
    for _ in range(10000):
        try:
            call("bpf", 0, None, 0)
            return "bpf was let through"
        except OSError as error:
            codes.add(error.errno)
    return stopped("bounded") if codes <= {1, 38} else f"errors {codes}"
