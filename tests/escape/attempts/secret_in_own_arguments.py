"""An environment variable of the host, in /proc/self."""

from escape import HOST, attempt, stopped


@attempt
def secret_in_own_arguments():
    text = open("/proc/self/environ", "rb").read() + open("/proc/self/cmdline", "rb").read()
    return "sees the secret" if HOST["secret"].encode() in text else stopped("bounded")
