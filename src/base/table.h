/* table.h - loops over arrays of fixed length. */
#pragma once

#define COUNT_OF(table) (sizeof(table) / sizeof(*(table)))

/* NOLINTBEGIN(bugprone-macro-parentheses): a name that is declared cannot stand in them */
#define for_each(row, table) \
    for (__typeof__(&(table)[0]) row = (table); row < (table) + COUNT_OF(table); row++)
/* NOLINTEND(bugprone-macro-parentheses) */
