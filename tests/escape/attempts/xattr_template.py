"""An attribute on a file of the template: seen by the neighbours."""

import os

from escape import attempt


@attempt
def xattr_template():
    os.setxattr("/usr/bin/env", "user.escape", b"1")
    return "wrote an attribute"
