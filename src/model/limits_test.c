/* limits_test.c - limits are found, parsed, written and compared. */
#include "model/limits.h"

#include "base/table.h"
#include "base/test.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    enum limit_id id;
    const char *text;
    int result;
    uint64_t value;
} readings[] = {
    { LIMIT_memory, "0", 0, 0 },
    { LIMIT_memory, "4096", 0, 4096 },
    { LIMIT_memory, "64K", 0, 65536 },
    { LIMIT_memory, "64KiB", 0, 65536 },
    { LIMIT_memory, "256MiB", 0, 268435456 },
    { LIMIT_memory, "1G", 0, 1073741824 },
    { LIMIT_memory, "", -1, 0 },   /* a size needs its unit */
    { LIMIT_memory, "-1", -1, 0 }, /* strtoull would accept it */
    { LIMIT_memory, "+1", -1, 0 },
    { LIMIT_memory, " 1", -1, 0 },
    { LIMIT_memory, "1 MiB", -1, 0 },
    { LIMIT_memory, "64k", 0, 65536 },
    { LIMIT_memory, "64kb", 0, 65536 },
    { LIMIT_memory, "512mb", 0, 536870912 },
    { LIMIT_memory, "512mib", 0, 536870912 },
    { LIMIT_memory, "1MB", 0, 1048576 }, /* 1024 KiB */
    { LIMIT_memory, "1gB", 0, 1073741824 },
    { LIMIT_memory, "1TB", -1, 0 },
    { LIMIT_memory, "1B", -1, 0 },
    { LIMIT_memory, "0x10", -1, 0 },
    { LIMIT_memory, "1e6", -1, 0 },
    { LIMIT_memory, "1.5G", -1, 0 },
    { LIMIT_memory, "30s", -1, 0 },
    { LIMIT_memory, "KiB", -1, 0 },
    { LIMIT_memory, "18446744073709551615", 0, UINT64_MAX },
    { LIMIT_memory, "18446744073709551616", -1, 0 },
    { LIMIT_memory, "99999999999999999G", -1, 0 }, /* more than 64 bits */
    { LIMIT_wall, "30", -1, 0 }, /* ambiguous: seconds, as for timeout(1), or milliseconds */
    { LIMIT_wall, "500ms", 0, 500 },
    { LIMIT_wall, "30s", 0, 30000 },
    { LIMIT_wall, "10m", 0, 600000 },
    { LIMIT_wall, "1h", 0, 3600000 },
    { LIMIT_wall, "1M", -1, 0 },
    { LIMIT_wall, "1m30s", -1, 0 },
    { LIMIT_wall, "1.5s", -1, 0 },
    { LIMIT_wall, "9999999999999999999h", -1, 0 },
    { LIMIT_cpus, "0.5", 0, 500 },
    { LIMIT_cpus, "2", 0, 2000 },
    { LIMIT_cpus, "1.25", 0, 1250 },
    { LIMIT_cpus, "0.001", 0, 1 },
    { LIMIT_cpus, "0.0001", -1, 0 },
    { LIMIT_cpus, "1.", -1, 0 },
    { LIMIT_cpus, ".5", -1, 0 },
    { LIMIT_cpus, "1,5", -1, 0 },
    { LIMIT_cpus, "500m", -1, 0 },
    { LIMIT_cpus, "18446744073709551615", -1, 0 },
    { LIMIT_cpus, "18446744073709551.615", 0, UINT64_MAX },
    { LIMIT_cpus, "18446744073709551.616", -1, 0 },
    { LIMIT_cpus, "18446744073709551.999", -1, 0 },
    { LIMIT_processes, "64", 0, 64 },
    { LIMIT_processes, "64K", -1, 0 },
    { LIMIT_processes, "0.5", -1, 0 },
    { LIMIT_processes, "nan", -1, 0 },
};

TEST(a_limit_is_read_with_its_unit)
{
    for_each(fact, readings) {
        error err = { 0 };
        uint64_t value = 0;
        int result = limit_parse(fact->id, fact->text, &value, &err);
        expect(result == fact->result && value == fact->value, "'%s' gave %d, %" PRIu64, fact->text,
               result, value);
        expect(result == 0 || (err.code == ERR_LIMIT && strstr(err.text, "; write ")),
               "'%s' is refused with '%s'", fact->text, err.text);
    }
}

TEST(a_limit_is_written_for_people)
{
    static const struct {
        enum limit_id id;
        uint64_t value;
        const char *text;
    } facts[] = {
        { LIMIT_memory, 0, "0 bytes" },
        { LIMIT_memory, 1000, "1000 bytes" },
        { LIMIT_memory, 1536, "1536 bytes" },
        { LIMIT_memory, 256 * MiB, "256 MiB" },
        { LIMIT_memory, 3 * GiB, "3 GiB" },
        { LIMIT_memory, 1025 * KiB, "1025 KiB" },
        { LIMIT_wall, 0, "0 ms" },
        { LIMIT_wall, 500, "500 ms" },
        { LIMIT_wall, 5000, "5 s" },
        { LIMIT_wall, 90000, "90 s" },
        { LIMIT_wall, 600000, "10 min" },
        { LIMIT_wall, 86400000, "24 h" },
        { LIMIT_cpus, 500, "0.5" },
        { LIMIT_cpus, 1250, "1.25" },
        { LIMIT_cpus, 1, "0.001" },
        { LIMIT_cpus, 2000, "2" },
        { LIMIT_cpus, 10000, "10" },
        { LIMIT_cpus, 0, "0" },
        { LIMIT_processes, 64, "64" },
        { LIMIT_processes, 0, "0" },
        { LIMIT_memory, UINT64_MAX, "18446744073709551615 bytes" },
    };
    for_each(fact, facts) {
        char text[32] = "";
        limit_print(fact->id, fact->value, text, sizeof text);
        expect(strcmp(text, fact->text) == 0, "%" PRIu64 " is written '%s'", fact->value, text);
    }
    struct {
        char text[4], behind[8];
    } small = { .behind = "0000000" };
    limit_print(LIMIT_cpus, 123400, small.text, sizeof small.text);
    expect(strlen(small.text) < sizeof small.text && strcmp(small.behind, "0000000") == 0,
           "a small buffer is kept to: '%s'", small.behind);
}

TEST(every_row_is_whole)
{
    struct limits limits;
    limits_init(&limits);
    for_each(row, limit_rows) {
        enum limit_id id = (enum limit_id)(row - limit_rows);
        expect(row->min <= row->start && row->start <= row->max, "%s starts out of bounds",
               row->name);
        expect(limit_get(&limits, id) == row->start, "%s is not at its default", row->name);
        expect(limit_find(row->name) == id, "%s is not found", row->name);
        expect(limit_find(row->json_name) == id, "%s is not found", row->json_name);

        char text[400] = "";
        limit_sentence(id, row->max, row->max, row->max, text, sizeof text);
        expect(strstr(text, " limit") && strstr(text, "; ask for ") &&
                   strlen(text) + 1 < sizeof text,
               "%s says '%s'", row->name, text);
    }
}

TEST(a_limit_is_found_by_each_of_its_names)
{
    static const struct {
        const char *name;
        enum limit_id id;
    } facts[] = {
        { "wall", LIMIT_wall },
        { "wall_ms", LIMIT_wall },
        { "memory_bytes", LIMIT_memory },
        { "cpus", LIMIT_cpus },
        { "disk-read-rate", LIMIT_disk_read_rate },
        { "disk_read_rate_bytes", LIMIT_disk_read_rate },
        { "open-files", LIMIT_open_files },
        { "processes", LIMIT_processes },
        { "wal", LIMITS },
        { "wall_", LIMITS },
        { "WALL", LIMITS },
        { "memory-bytes", LIMITS }, /* a flag has no unit, a JSON name no dash */
        { "", LIMITS },
    };
    for_each(fact, facts)
        expect(limit_find(fact->name) == fact->id, "'%s' found %d", fact->name,
               (int) limit_find(fact->name));
}

TEST(a_limit_keeps_its_bounds)
{
    struct limits limits;
    limits_init(&limits);
    error err = { 0 };
    expect(limit_set(&limits, LIMIT_processes, 0, &err) < 0 && err.code == ERR_LIMIT,
           "0 processes");
    expect(strstr(err.text, "limit processes cannot be 0; ask for 1 to 32768"), "'%s'", err.text);
    expect(limits.processes == 64, "a refused value was written");
    expect(limit_set(&limits, LIMIT_processes, 32769, &err) < 0, "too many processes");
    expect(limit_set(&limits, LIMIT_processes, 1, &err) == 0 && limits.processes == 1, "1 process");
    expect(limit_set(&limits, LIMIT_output, 0, &err) == 0, "no output may be kept");
}

TEST(zero_is_the_max_where_it_means_not_limited)
{
    static const struct {
        enum limit_id id;
        uint64_t value, max;
        bool exceeds;
    } facts[] = {
        { LIMIT_wall, 5, 5, false },          { LIMIT_wall, 6, 5, true },
        { LIMIT_cpus, 0, 0, false },          { LIMIT_cpus, 0, 500, true },
        { LIMIT_cpus, 500, 0, false },        { LIMIT_cpus, 501, 500, true },
        { LIMIT_output, 0, 5, false },        { LIMIT_output, 5, 0, true },
        { LIMIT_disk_read_rate, 0, 1, true }, { LIMIT_artifacts, 1, 0, true },
    };
    for_each(fact, facts)
        expect(limit_exceeds(fact->id, fact->value, fact->max) == fact->exceeds,
               "%s %" PRIu64 " against %" PRIu64, limit_rows[fact->id].name, fact->value,
               fact->max);
    expect(limit_may_be_off(LIMIT_cpus) && !limit_may_be_off(LIMIT_output), "which may be off");
}

TEST(a_sentence_says_what_happened_and_what_to_do)
{
    static const struct {
        enum limit_id id;
        uint64_t granted, used, maximum;
        const char *text;
    } facts[] = {
        { LIMIT_wall, 5000, 5001, 60000,
          "execution exceeded the 5 s wall-clock limit; output so far and files in /workspace are "
          "kept; ask for limits.wall_ms up to 60000 or a wider policy" },
        { LIMIT_output, MiB, 17 * MiB, MiB,
          "output exceeded the limit of 1 MiB a stream (used: 17 MiB); output so far and files in "
          "/workspace are kept; the policy allows no more; ask for a wider policy" },
        { LIMIT_cpus, 500, 0, 2000,
          "execution was slowed to the limit of 0.5 processors; output so far and files in "
          "/workspace are kept; ask for limits.cpus up to 2 or a wider policy" },
    };
    for_each(fact, facts) {
        char text[400] = "";
        limit_sentence(fact->id, fact->granted, fact->used, fact->maximum, text, sizeof text);
        expect(strcmp(text, fact->text) == 0, "'%s'", text);
    }
    char all_used[400];
    limit_sentence(LIMIT_output, MiB, MiB, MiB, all_used, sizeof all_used);
    expect(!strchr(all_used, '('), "a limit that was used up is given twice: '%s'", all_used);
    char small[8];
    limit_sentence(LIMIT_wall, 1, 1, 1, small, sizeof small);
    expect(strcmp(small, "executi") == 0, "'%s'", small);
}

TESTS(CASE(a_limit_is_read_with_its_unit), CASE(a_limit_is_written_for_people),
      CASE(every_row_is_whole), CASE(a_limit_is_found_by_each_of_its_names),
      CASE(a_limit_keeps_its_bounds), CASE(zero_is_the_max_where_it_means_not_limited),
      CASE(a_sentence_says_what_happened_and_what_to_do))
