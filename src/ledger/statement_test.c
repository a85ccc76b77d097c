/* statement_test.c - the receipt fits into the log for any name, files and output of a run. */
#include "ledger/list.h"
#include "ledger/segment.h"
#include "ledger/statement.h"

#include "base/test.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 300, NAME_SIZE = 4096 };

static const struct statement_place place = { .origin = "glovebox/0000000000000000", .at_ms = 1 };
static const struct opening_key nonce = { { 0 } };
static const struct fact_place machine = { .version = "test", .kernel = "test" };

/* Names that grow sixfold in JSON, and numbers that JSON cannot hold. */
static struct receipt_facts hostile_facts(void)
{
    static char name[NAME_SIZE];
    static struct fact_file files[ROWS];
    static struct fact_denial denials[ROWS];
    static struct fact_connection connections[ROWS];
    static const char *variables[ROWS];
    memset(name, 1, sizeof name - 1);
    for (size_t i = 0; i < ROWS; i++) {
        files[i] = (struct fact_file){ .name = name, .bytes = UINT64_MAX };
        memset(files[i].sha256, 'a', 64);
        denials[i] = (struct fact_denial){ "artifact", name, UINT64_MAX };
        connections[i] = (struct fact_connection){ .host = name,
                                                   .decision = "allow",
                                                   .path = name,
                                                   .sent = UINT64_MAX,
                                                   .received = UINT64_MAX };
        variables[i] = name;
    }
    struct receipt_facts facts = { .id = "run_",
                                   .nonce = &nonce,
                                   .kind = "run",
                                   .input_count = ROWS,
                                   .inputs = files,
                                   .artifact_count = ROWS,
                                   .artifacts = files,
                                   .denial_count = ROWS,
                                   .denials = denials,
                                   .connection_count = ROWS,
                                   .connections = connections,
                                   .connections_unlisted = UINT64_MAX / 2,
                                   .variable_count = ROWS,
                                   .variables = variables };
    memset(facts.used, 0xFF, sizeof facts.used);
    memset(facts.hits, 0xFF, sizeof facts.hits);
    facts.output[0].bytes = facts.output[1].kept = UINT64_MAX;
    return facts;
}

static size_t count_of(const struct bytes *text, const char *word)
{
    size_t count = 0;
    const char *end = text->data + text->size;
    for (const char *at = text->data; (at = memmem(at, (size_t) (end - at), word, strlen(word)));
         at++)
        count++;
    return count;
}

TEST(no_name_and_no_number_makes_a_receipt_too_large)
{
    struct receipt_facts facts = hostile_facts();
    struct bytes text = { 0 };
    error err;
    require(statement_write(&facts, &machine, &place, &text, &err) == 0, "%s", err.text);
    expect(text.size < RECORD_MAX / 8, "it has %zu bytes", text.size);
    expect(count_of(&text, "\"count\":300") == 5, "%zu lists are given by their count",
           count_of(&text, "\"count\":300"));
    bytes_done(&text);
}

TEST(a_minimal_receipt_has_counts_and_no_rows)
{
    struct receipt_facts facts = hostile_facts();
    struct bytes text = { 0 };
    error err;
    facts.is_minimal = true;
    require(statement_write(&facts, &machine, &place, &text, &err) == 0, "%s", err.text);
    expect(text.size < 8192, "it has %zu bytes", text.size);
    expect(count_of(&text, "\"count\":300,\"sha256\":null") == 5, "its lists are %s",
           bytes_text(&text));
    bytes_done(&text);
}

TEST(a_list_without_memory_is_reported_by_its_count)
{
    struct receipt_facts facts = hostile_facts();
    struct bytes text = { 0 };
    error err;
    facts.artifacts = NULL;
    facts.inputs = NULL;
    require(statement_write(&facts, &machine, &place, &text, &err) == 0, "%s", err.text);
    expect(count_of(&text, "\"count\":300,\"sha256\":null") == 2, "not two lists are unknown");
    bytes_done(&text);
}

TEST(rows_are_listed_up_to_the_last_that_fits)
{
    static struct fact_file files[ROWS];
    static char name[100];
    struct receipt_facts facts = {
        .nonce = &nonce, .id = "run_", .kind = "run", .artifacts = files
    };
    struct bytes text = { 0 };
    error err;
    memset(name, 'n', sizeof name - 1);
    for (size_t i = 0; i < ROWS; i++) {
        files[i].name = name;
        memset(files[i].sha256, 'a', 64);
    }
    static const char row[] = "{\"bytes\":0,\"commitment\":\"\",\"name\":\"\"},";
    size_t fit = (LIST_BYTES_MAX + 1) / (sizeof row - 1 + 64 + sizeof name - 1);
    for (size_t count = fit; count <= fit + 1; count++) {
        text.size = 0;
        facts.artifact_count = count;
        require(statement_write(&facts, &machine, &place, &text, &err) == 0, "%s", err.text);
        expect(count_of(&text, name) == fit, "%zu of %zu stand there", count_of(&text, name),
               count);
        expect((count_of(&text, "\"shortened\":{}") == 1) == (count == fit),
               "%zu rows are cut wrong", count);
    }
    bytes_done(&text);
}

TESTS(CASE(no_name_and_no_number_makes_a_receipt_too_large),
      CASE(a_minimal_receipt_has_counts_and_no_rows),
      CASE(a_list_without_memory_is_reported_by_its_count),
      CASE(rows_are_listed_up_to_the_last_that_fits))
