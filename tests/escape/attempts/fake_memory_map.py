"""What /proc says about our memory."""

from escape import attempt, call


@attempt
def fake_memory_map():
    call("prctl", 35, 1, 0, 0, 0)
    return "moved its code"
