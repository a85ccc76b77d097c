"""Settings that keep libraries from starting threads when they are imported: fork copies one thread, and a lock held by
another would never be released. For zygotes, and for the build of a template, which tries their imports."""

import os

SINGLE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "NUMEXPR_MAX_THREADS": "1",
    # pyarrow, which pandas imports: its own allocators start threads. jemalloc allocates a cache even if it is not used,
    # which costs every forked interpreter two page tables.
    "ARROW_DEFAULT_MEMORY_POOL": "system", "JE_ARROW_MALLOC_CONF": "background_thread:false,tcache:false",
}


def allow_one_thread():
    os.environ.update(SINGLE_THREAD)
