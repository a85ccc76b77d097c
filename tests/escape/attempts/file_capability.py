"""A program with CAP_SYS_ADMIN in its file."""

import os
import struct

from escape import attempt


@attempt
def file_capability():
    open("/workspace/tool", "w").close()
    value = struct.pack("<IIIII", 0x02000001, 1 << 21, 0, 0, 0)
    os.setxattr("/workspace/tool", "security.capability", value)
    return "gave a file a capability"
