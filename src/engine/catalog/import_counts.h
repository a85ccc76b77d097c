/* import_counts.h - which of a template's Python libraries its programs import, for
 * `glovebox template tune`.
 *
 * Counted are names that the template has in a dist-packages folder: what programs say cannot make
 * the table grow, and no other word of theirs gets into the metrics. */
#pragma once

#include "base/bytes.h"

#include <stdbool.h>
#include <stddef.h>

struct import_counts;

/* Reads the names below `root` of the template's directory, at most 1024. Returns  NULL without
 * Python libraries, or memory; then nothing is counted. */
struct import_counts *import_counts_open(int template);
void import_counts_free(struct import_counts *counts);

/* Setting count_imports. */
void import_counts_enable(bool is_enabled);

/* A program begins whose imports are told next. All take NULL. */
void import_counts_program(struct import_counts *counts);
/* It imports this; once a program is counted. */
void import_counts_add(struct import_counts *counts, const char *name, size_t length);

struct templates;
/* As text for Prometheus: the families of metrics.def with the label IMPORT. */
void import_counts_write(const struct templates *templates, struct bytes *out);
