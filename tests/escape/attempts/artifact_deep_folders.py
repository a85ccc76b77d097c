"""Two hundred folders, one in the other."""

import os

from escape import attempt, stopped


@attempt
def artifact_deep_folders():
    for _ in range(200):
        os.mkdir("d")
        os.chdir("d")
    open("deep.txt", "w").close()
    return stopped("not-returned")
