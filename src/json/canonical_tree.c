/* canonical_tree.c - RFC 8785 over a tree of json-c: members sorted by UTF-16, numbers as
 * ECMAScript prints them. */
#include "json/canonical_tree.h"

#include "base/auto_free.h"
#include "json/canonical_writer.h"
#include "json/writer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS_MAX = 17 };

static int compare(const void *left, const void *right)
{
    return jcs_compare(*(const char *const *) left, *(const char *const *) right);
}

/* Writes the shortest digits that give the same number, from the form d.ddde±x; the position of the
 * point decides on the form (ECMA-262, Number::toString). */
static void write_double(double number, struct bytes *out)
{
    char text[40], digits[24];
    size_t count = 0;
    json_comma(out);
    if (number == 0) { /* also -0 */
        bytes_add_text(out, "0");
        return;
    }
    for (int precision = 0; precision < DIGITS_MAX; precision++) {
        (void) snprintf(text, sizeof text, "%.*e", precision, fabs(number));
        if (strtod(text, NULL) == fabs(number))
            break;
    }
    const char *e = strchr(text, 'e');
    int point = e ? (int) strtol(e + 1, NULL, 10) + 1 : 0;
    for (const char *at = text; *at && *at != 'e'; at++)
        if (*at != '.' && count < sizeof digits - 1)
            digits[count++] = *at;
    digits[count] = '\0';
    if (number < 0)
        bytes_add_text(out, "-");
    if (point > 21 || point < -5)
        bytes_print(out, "%c%s%se%+d", digits[0], count > 1 ? "." : "", digits + 1, point - 1);
    else if (point <= 0)
        bytes_print(out, "0.%.*s%s", -point, "000000", digits);
    else if ((size_t) point >= count)
        bytes_print(out, "%s%.*s", digits, point - (int) count, "000000000000000000000");
    else
        bytes_print(out, "%.*s.%s", point, digits, digits + point);
}

/* NOLINTNEXTLINE(misc-no-recursion): the reader of requests bounds the depth */
static void write_object(struct json_object *object, struct bytes *out)
{
    size_t count = 0;
    auto_free const char **names =
        (const char **) calloc((size_t) json_object_object_length(object) + 1, sizeof *names);
    if (!names) {
        out->failed = true;
        return;
    }
    json_object_object_foreach(object, name, unused)
    {
        (void) unused;
        names[count++] = name;
    }
    qsort((void *) names, count, sizeof *names, compare);
    json_open(out, '{');
    for (size_t i = 0; i < count; i++) {
        json_canonical_text(out, names[i], strlen(names[i]));
        bytes_add_text(out, ":");
        canonical_write(json_object_object_get(object, names[i]), out);
    }
    json_close(out, '}');
}

/* NOLINTNEXTLINE(misc-no-recursion): the reader of requests bounds the depth */
void canonical_write(struct json_object *value, struct bytes *out)
{
    switch (json_object_get_type(value)) {
    case json_type_null:
        json_null(out);
        break;
    case json_type_boolean:
        json_flag(out, json_object_get_boolean(value));
        break;
    case json_type_int:
        json_number(out, json_object_get_int64(value));
        break;
    case json_type_double:
        write_double(json_object_get_double(value), out);
        break;
    case json_type_string:
        json_canonical_text(out, json_object_get_string(value),
                            (size_t) json_object_get_string_len(value));
        break;
    case json_type_array:
        json_open(out, '[');
        for (size_t i = 0; i < json_object_array_length(value); i++)
            canonical_write(json_object_array_get_idx(value, i), out);
        json_close(out, ']');
        break;
    case json_type_object:
        write_object(value, out);
        break;
    }
}
