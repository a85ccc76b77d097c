"""The list of mounts says where on the host the root comes from."""

from escape import HOST, attempt, stopped


@attempt
def find_host_paths_in_mounts():
    text = open("/proc/self/mountinfo", encoding="utf-8").read()
    return "the host's folder is named" if HOST["state"] in text else stopped("bounded")
