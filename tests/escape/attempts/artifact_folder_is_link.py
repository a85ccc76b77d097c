"""A folder that is a link to the root."""

import os

from escape import attempt, stopped


@attempt
def artifact_folder_is_link():
    os.symlink("/", "/workspace/results")
    return stopped("not-returned")
