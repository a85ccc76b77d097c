"""Takes /workspace away."""

from escape import attempt, call


@attempt
def unmount_scratch():
    call("umount2", b"/workspace", 2)
    return "unmounted /workspace"
