/* schema.h - descriptions of parameters and documents for all doors: REST makes its OpenAPI
 * document from them, MCP the schemas of its tools.
 *
 * Types are written in a few words; schema_write.c turns them into JSON Schema:
 *
 *     string  string 1..255  string /^[a-z]*$/  text 1..63 (without NUL)
 *     path (beneath a folder, without control characters)  base64
 *     moment (RFC 3339, UTC, milliseconds)  count  count 0..300  integer
 *     number  number 0.5..9  boolean  any  object
 *     =ok,error,limit        one of these words
 *     RunResult              that schema: a word with a capital
 *     []string  [64]Artifact a list of them, of at most 64; [1..]text of at least one
 *     {}string  {64}string   an object with any keys, at most 64
 *     {name}string           with names of variables as keys
 *     string|[]string        one of these
 *     number?                or null */
#pragma once

#include <stdbool.h>

/* For routes that are `is_once`. */
#define KEY_TYPE "string 1..255"
#define KEY_TEXT                                                                                   \
    "the same key with the same body gets the same answer for a day, and nothing is begun twice; " \
    "what was begun goes on when the connection ends"

/* One field of an object. */
struct property {
    const char *name; /* NULL ends a list */
    const char *type;
    const char *text;
    bool may_lack; /* in a request: optional. In an answer every field is always there */
};

/* The fields of one schema, in its row. */
/* clang-format off */
#define FIELDS(...) (const struct property[]){ __VA_ARGS__, { 0 } }
/* clang-format on */

/* A named schema. Every JSON body has one; schemas.c lists the tables of all areas. */
struct schema {
    const char *name;
    const char *text;
    const struct property *fields; /* NULL: it is one of these others: */
    const char *either[3];
    bool is_open;                 /* other keys are allowed */
    bool is_never_empty;          /* one of the fields has to be there */
    const struct property *first; /* fields of another schema, before its own */
    const char *example;          /* JSON */
};

extern const struct schema *const schema_tables[]; /* NULL at the end */
extern const struct schema catalog_schemas[], session_schemas[], file_schemas[], log_schemas[];
extern const struct property run_result[]; /* the result of a cell begins with it */
