/* import_scan.h - chooses the zygote of a template that suits a program, by the program's
 * imports. */
#pragma once

#include "engine/catalog/templates.h"

#include <stddef.h>

/* Looks at lines that begin with "import" or "from" and parses nothing else: a wrong choice costs
 * time, not correctness. Returns the index of the set, -1 if the template has none. */
int imports_choose(const struct template *template, const char *code, size_t size);

/* Counts imports for the metrics, unless the policy withholds output: even a name could carry a bit
 * of it. */
void imports_count(const struct template *template, const struct policy *policy, const char *code,
                   size_t size);
