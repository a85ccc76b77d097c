"""The root at a second place, without its flags."""

from escape import attempt, call


@attempt
def mount_bind():
    call("mount", b"/", b"/tmp", None, 4096, None)
    return "bound the root"
