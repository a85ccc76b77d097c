/* setup_answers.h - the five answers of `glovebox setup`: what is right, the files they make. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "policy/settings.h"

enum setup_answer {
    SETUP_STATE,
    SETUP_LISTEN,
    SETUP_KEYS,
    SETUP_NETWORK,
    SETUP_TEMPLATES,
    SETUP_ANSWERS
};

struct setup_answers {
    char list[SETUP_ANSWERS][SETTING_SIZE]; /* "none" where nothing is wanted */
};

bool setup_wants(const struct setup_answers *answers, enum setup_answer id);

/* Fails  with what would be right. */
int setup_check(enum setup_answer id, const char *text, error *err);

/* The next word of a list with commas: copied to `ret_word`. Gives  where to go on; NULL: that was
 * all. */
const char *setup_next_word(const char *list, char ret_word[SETTING_SIZE]);

/* The text of glovebox.yaml: what was there without the settings that are asked for, then those. */
void setup_write_settings(const char *before, const struct setup_answers *answers,
                          struct bytes *ret_text);

/* The text of the policy that has the network that was asked for. */
void setup_write_policy(const struct setup_answers *answers, struct bytes *ret_text);

/* What may be said: "minimal, node, python". */
void setup_list_sets(char *text, size_t size);
void setup_list_templates(char *text, size_t size);
