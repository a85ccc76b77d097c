"""Makes a device node of the first disk."""

import os
import stat

from escape import attempt


@attempt
def device_node():
    os.mknod("/workspace/disk", stat.S_IFBLK | 0o600, os.makedev(8, 0))
    return "made a disk"
