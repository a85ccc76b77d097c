/* doctor_report.h - keeps the last report of `glovebox doctor` where receipts find it: each names
 * its hash, and so which walls had been tried, and found standing, on this machine. */
#pragma once

#include <stddef.h>

/* Into STATE/daemon/self-test.json, if a daemon has been there and we may write. What cannot be
 * kept is left: the report has been printed. */
void self_test_keep(const char *json, size_t size);
