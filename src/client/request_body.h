/* request_body.h - writes bodies of requests: JSON, member by member, into a sink. */
#pragma once

#include "base/sink.h"

#include <glovebox.h>

#include <stdbool.h>

struct body {
    struct sink *sink;
    bool has_member; /* the next one begins with a comma */
};

void body_string(struct sink *sink, const char *text, size_t size); /* a value, in quotes */
void body_key(struct body *body, const char *name);
void body_text(struct body *body, const char *name, const char *text);          /* NULL: left out */
void body_list(struct body *body, const char *name, const char *const *list);   /* NULL-ended */
void body_pairs(struct body *body, const char *name, const char *const *pairs); /* "NAME=value" */
void body_number(struct body *body, const char *name, uint64_t number);         /* 0: left out */

void body_seconds(struct body *body, const char *name, uint64_t ms); /* 0: left out */

/* The names of limits have been checked before. */
void body_limits(struct body *body, const glb_limit *limits, size_t count);

void body_expectation(struct body *body, const char *json); /* NULL: left out */

/* Checks of texts before the request is sent. NULL is allowed. */
int check_text(const char *what, const char *text, size_t size, error *err);
int check_texts(const char *what, const char *const *list, error *err);
int check_pairs(const char *what, const char *const *list, error *err);
int check_limits(const glb_limit *limits, size_t count, error *err);
int check_expectation(const char *text, error *err);
