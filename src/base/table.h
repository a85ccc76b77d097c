/* table.h - walking over tables of fixed length. */
#pragma once

#define COUNT_OF(table) (sizeof(table) / sizeof(*(table)))

#define for_each(row, table) \
    for (__typeof__(&(table)[0]) row = (table); row < (table) + COUNT_OF(table); row++)
