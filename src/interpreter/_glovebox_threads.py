"""What libraries read as they are loaded, so that they start no thread: fork copies one, and a lock that another held would
never be released. For zygotes, and for the build of a template, which tries what they import."""

import os

SINGLE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "NUMEXPR_MAX_THREADS": "1",
    # pyarrow, which pandas loads: the allocators that it brings have threads of their own.
    "ARROW_DEFAULT_MEMORY_POOL": "system", "JE_ARROW_MALLOC_CONF": "background_thread:false",
}


def allow_one_thread():
    os.environ.update(SINGLE_THREAD)
