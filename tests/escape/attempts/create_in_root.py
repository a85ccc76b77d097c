"""A new file beside the root's folders."""

from escape import attempt


@attempt
def create_in_root():
    open("/evil", "w").close()
    return "made /evil"
