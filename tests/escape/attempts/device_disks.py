"""Disks by their usual names."""

import os

from escape import attempt


@attempt
def device_disks():
    for name in ("sda", "vda", "nvme0n1", "xvda", "loop0", "mapper/control", "loop-control", "vdb"):
        if os.path.exists(f"/dev/{name}"):
            os.open(f"/dev/{name}", os.O_RDONLY)
            return f"opened {name}"
    os.stat("/dev/sda")
