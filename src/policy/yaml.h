/* yaml.h - a small YAML file as a table of nodes, each with its position.
 *
 * Only what a settings file needs: mappings, sequences, texts of one line and blocks ("|").
 * Anchors, aliases, tags, further documents and deep nesting are refused, so nothing is
 * hidden. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum { YAML_DEPTH_MAX = 24, YAML_NODES_MAX = 2048 };

enum yaml_kind { YAML_TEXT, YAML_SEQUENCE, YAML_MAPPING };

struct yaml_node {
    enum yaml_kind kind;
    int line, column; /* from 1 */
    const char *text; /* of a YAML_TEXT, ended by NUL */
    size_t length;    /* of the text */
    bool empty;       /* a key without a value: "key:" */
    bool quoted;      /* in quotes or a block: always a text */
    size_t children;  /* direct ones; a mapping has two for each key */
    unsigned first;   /* index of the first child */
    unsigned next;    /* index of the next sibling; 0: none */
};

struct yaml {
    const char *label; /* the name of the file in failures; borrowed */
    unsigned count;
    struct yaml_node *nodes; /* nodes[0] is the root */
    char *texts;
};

/* Parses. `label` must live as long as *ret_yaml, which yaml_done() ends, or auto_yaml if it began
 * as { 0 }: a failure leaves it as it was.
 * Fails  ERR_BAD_REQUEST  "label:line:column: cause; fix" */
int yaml_init(struct yaml *ret_yaml, const char *label, const char *text, size_t length,
              error *err);
void yaml_done(struct yaml *yaml);

#define auto_yaml __attribute__((cleanup(yaml_done))) struct yaml

/* The first child, or the next one; NULL after the last. */
const struct yaml_node *yaml_first(const struct yaml *yaml, const struct yaml_node *parent);
const struct yaml_node *yaml_next(const struct yaml *yaml, const struct yaml_node *node);

/* Fails with the node's position before the text. Returns -1. */
int yaml_fail(const struct yaml *yaml, const struct yaml_node *node, error *err, const char *format,
              ...) PRINTF(4, 5);

/* Puts the node's position before an existing failure. Returns -1. */
int yaml_under(const struct yaml *yaml, const struct yaml_node *node, error *err);
