/* import_counts.h - which of a template's Python libraries programs import, for `glovebox template
 * tune`.
 *
 * Only names that the template has in a dist-packages folder are counted, so that programs cannot
 * make the table grow, or put words of their own into the metrics. */
#pragma once

#include "base/bytes.h"

#include <stdbool.h>
#include <stddef.h>

struct import_counts;

/* Reads the names below `root` of the template's directory, at most 1024. Returns  NULL if there
 * are no Python libraries, or no memory; then nothing is counted. */
struct import_counts *import_counts_open(int template);
void import_counts_free(struct import_counts *counts);

/* The setting count_imports. */
void import_counts_enable(bool is_enabled);

/* A program begins, whose imports are counted next. All functions accept NULL. */
void import_counts_program(struct import_counts *counts);
/* The program imports this library; counted once per program. */
void import_counts_add(struct import_counts *counts, const char *name, size_t length);

struct templates;
/* Writes the families of metrics.def with the label IMPORT, as text for Prometheus. */
void import_counts_write(const struct templates *templates, struct bytes *out);
