/* output_check_fuzz.c - what the gate reads of others: the answer of its checker, of which only one
 * is a pass; patterns; and expectations, which are refused in words or have one spelling. The first
 * byte says which. */
#include "base/utf8.h"
#include "engine/review/output_check.h"
#include "json/canonical_tree.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_answer(char *text)
{
    static struct output_check_outcome outcome;
    const uint32_t counts[2] = { 3, 2 };
    bool is_pass = strcmp(text, "end 0\n") == 0;
    outcome = (struct output_check_outcome){ 0 };
    if (!output_check_read_answer(text, counts, &outcome))
        return;
    assert(outcome.verdict != OUTPUT_CHECK_PASSED || (is_pass && outcome.count == 0));
    assert(outcome.verdict != OUTPUT_CHECK_FAILED || outcome.count > 0);
    assert(outcome.count <= OUTPUT_CHECK_FINDINGS_MAX);
    assert(memchr(outcome.failure, '\0', sizeof outcome.failure));
    for (size_t i = 0; i < outcome.count; i++) {
        const struct output_check_finding *finding = &outcome.findings[i];
        assert(finding->rule < OUTPUT_CHECK_RULES && finding->place < PLACES);
        assert(finding->index < 3 && memchr(finding->detail, '\0', sizeof finding->detail));
        for (const char *at = finding->detail; *at; at++)
            assert(*at >= ' ' && *at <= '~');
    }
}

static void read_expectation(const char *text)
{
    error err = { 0 };
    struct expect_needs needs;
    if (!utf8_is_valid(text, strlen(text)))
        return; /* reader.h has refused it */
    struct json_object *json = json_tokener_parse(text);
    if (json && expectation_check(json, &needs, &err) == 0) {
        struct bytes once = { 0 }, again = { 0 };
        canonical_write(json, &once);
        struct json_object *same = json_tokener_parse(bytes_text(&once));
        assert(same && expectation_check(same, &needs, &err) == 0);
        canonical_write(same, &again);
        assert(once.size == again.size && memcmp(once.data, again.data, once.size) == 0);
        (void) json_object_put(same);
        bytes_done(&once);
        bytes_done(&again);
    } else if (json) {
        assert(err.code != ERR_NONE && memchr(err.text, '\0', sizeof err.text) && err.text[0]);
    }
    (void) json_object_put(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[64 * 1024];
    error err;
    if (size < 1 || size >= sizeof text)
        return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    if (data[0] % 3 == 0)
        read_answer(text);
    else if (data[0] % 3 == 1)
        (void) expectation_check_pattern(text, size - 1, &err);
    else
        read_expectation(text);
    return 0;
}
