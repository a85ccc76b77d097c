/* open_files.h - how many descriptors this process may have. */
#pragma once

/* Raises the limit to the one that may not be passed, RLIMIT_NOFILE of setrlimit(2).
 * Returns  how many there may be now. */
unsigned long open_files_raise(void);
