/* setup_answers.h - checks the five answers of `glovebox setup`, and makes files from them. */
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
    char list[SETUP_ANSWERS][SETTING_SIZE]; /* "none" if nothing is wanted */
};

bool setup_wants(const struct setup_answers *answers, enum setup_answer id);

/* Checks an answer. A failure says what would be valid. */
int setup_check(enum setup_answer id, const char *text, error *err);

/* Copies the next word of a list with commas to `ret_word`. Returns the rest of the list; NULL:
 * there was no word left. */
const char *setup_next_word(const char *list, char ret_word[SETTING_SIZE]);

/* Makes the text of glovebox.yaml: the old one without the settings asked for, then the answers. */
void setup_write_settings(const char *before, const struct setup_answers *answers,
                          struct bytes *ret_text);

/* Makes the text of the policy for the network that was asked for. */
void setup_write_policy(const struct setup_answers *answers, struct bytes *ret_text);

/* List the possible answers, as in "minimal, node, python". */
void setup_list_sets(char *text, size_t size);
void setup_list_templates(char *text, size_t size);
