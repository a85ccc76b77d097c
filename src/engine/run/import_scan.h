/* import_scan.h - which of a template's warmed interpreters suits a program, by a look at its
 * imports. */
#pragma once

#include "engine/catalog/templates.h"

#include <stddef.h>

/* Looks at lines that begin with "import" or "from", without running or parsing anything: a wrong
 * guess costs time, not correctness. Returns the index of the set, -1 if the template has none. */
int imports_choose(const struct template *template, const char *code, size_t size);

/* Counts them for the metrics, unless the policy withholds what code puts out: a name is a bit of
 * it. */
void imports_count(const struct template *template, const struct policy *policy, const char *code,
                   size_t size);
