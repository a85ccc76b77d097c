"""Whether programs could gain privileges at all."""

from escape import attempt, stopped


@attempt
def new_privileges_flag():
    text = open("/proc/self/status", encoding="utf-8").read()
    return stopped("bounded") if "NoNewPrivs:\t1" in text else "programs can gain privileges"
