"""A child that outlives the program swaps a file and a link while artifacts are collected."""

import os

from escape import HOST, attempt, stopped


@attempt
def artifact_swapped_while_collected():
    if os.fork() == 0:
        os.setsid()
        while True:
            for make in (lambda: open("/workspace/swap", "w").close(), lambda: os.symlink(HOST["canary"], "/workspace/swap")):
                try:
                    os.unlink("/workspace/swap")
                except OSError:
                    pass
                try:
                    make()
                except OSError:
                    pass
    return stopped("not-returned")
