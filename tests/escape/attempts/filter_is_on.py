"""What /proc says about the filter."""

from escape import attempt, stopped


@attempt
def filter_is_on():
    text = open("/proc/self/status", encoding="utf-8").read()
    return stopped("bounded") if "Seccomp:\t2" in text else "no filter"
