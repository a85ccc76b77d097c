"""A new file in every folder of the tree; only the five places may take it."""

import os

from escape import attempt, stopped


@attempt
def write_outside_five_places():
    places = ("/workspace", "/tmp", "/home/user", "/run", "/dev/shm", "/proc")
    for folder, names, _ in os.walk("/"):
        if folder.startswith(places):
            names.clear()
            continue
        try:
            os.close(os.open(folder + "/escape", os.O_WRONLY | os.O_CREAT, 0o600))
            return f"wrote into {folder}"
        except OSError:
            pass
    return stopped("bounded")
