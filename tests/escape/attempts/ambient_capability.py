"""An ambient capability, which programs inherit."""

from escape import attempt, call


@attempt
def ambient_capability():
    call("prctl", 47, 2, 21, 0, 0)
    return "has an ambient capability"
