/* policy_fuzz.c - any bytes as a policy file: either a policy that keeps its own promises comes
 * out, or a failure that says where and why. */
#include "base/cleanup.h"
#include "base/table.h"
#include "base/text.h"
#include "policy/expect.h"
#include "policy/policy.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What a policy expects is what a request could expect. */
static void check_expect(const struct policy_expect *expect)
{
    error err = { 0 };
    struct expect_needs needs = { 0 };
    struct json_object *list = expect->text[0] ? json_tokener_parse(expect->text) : NULL;
    assert(!expect->text[0] ||
           (json_object_is_type(list, json_type_array) && json_object_array_length(list) > 0));
    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        struct expect_needs one;
        assert(expectation_check(json_object_array_get_idx(list, i), &one, &err) == 0);
        needs.contents |= one.contents;
        needs.result |= one.result;
        needs.artifacts |= one.artifacts;
    }
    assert(memcmp(&needs, &expect->needs, sizeof needs) == 0);
    (void) json_object_put(list);
}

static void check_policy(const struct policy *policy)
{
    error err = { 0 };
    assert(policy_name_is_valid(policy->name));
    assert(policy_name_is_valid(policy->template));
    assert(policy->language_count > 0 && policy->language_count <= POLICY_LANGUAGES_MAX);
    assert(policy->variable_count <= POLICY_VARIABLES_MAX);
    for (size_t i = 0; i < policy->variable_count; i++)
        assert(policy_check_variable(policy->variables[i].name, policy->variables[i].value, &err) ==
               0);

    struct limits_asked asked = { 0 };
    struct limits granted;
    for_each(row, limit_rows) {
        enum limit_id id = (enum limit_id)(row - limit_rows);
        assert(!limit_exceeds(id, limit_get(&policy->limits, id), limit_get(&policy->maximum, id)));
        assert(limits_ask(&asked, id, limit_get(&policy->maximum, id), &err) == 0);
    }
    assert(policy_narrow(policy, &asked, &granted, &err) == 0);
    assert(memcmp(&granted, &policy->maximum, sizeof granted) == 0);

    auto_text text = NULL;
    assert(policy_render(policy, &text, &err) == 0);
    assert(text_find_unclean(text, strlen(text)) == strlen(text));
    assert(strlen(policy->digest) == POLICY_DIGEST_SIZE - 1);
    check_expect(&policy->expect);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* The real parser gets text that is not ended by NUL and of which nothing more may be read. */
    auto_text copy = malloc(size > 0 ? size : 1);
    assert(copy);
    memcpy(copy, data, size);
    struct policy policy;
    error err = { 0 };
    struct policy_source source = { copy, size, "f.yaml", "" };
    if (policy_parse(&source, &policy, &err) == 0)
        check_policy(&policy);
    else {
        assert(err.code == ERR_BAD_REQUEST);
        assert(strncmp(err.text, "f.yaml:", 7) == 0 || size > POLICY_FILE_MAX);
        assert(memchr(err.text, '\0', sizeof err.text));
        size_t length = strlen(err.text);
        assert(length + 4 >= sizeof err.text || text_find_unclean(err.text, length) == length);
    }
    return 0;
}
