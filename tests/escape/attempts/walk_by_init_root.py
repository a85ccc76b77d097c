"""The root of pid 1, by its magic link."""

import os

from escape import attempt


@attempt
def walk_by_init_root():
    return f"listed {len(os.listdir('/proc/1/root/'))} names of init's root"
