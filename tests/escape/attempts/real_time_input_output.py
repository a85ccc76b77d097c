"""Real-time priority for reading and writing."""

from escape import attempt, call


@attempt
def real_time_input_output():
    call("ioprio_set", 1, 0, 1 << 13)
    return "has real-time input and output"
