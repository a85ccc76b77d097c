/* tar_reader_test.c - valid archives in pieces of every size, and invalid ones. */
#include "init/files/tar_reader.h"

#include "base/table.h"
#include "base/test.h"

#include <string.h>

static char seen[4096];
static unsigned ends; /* of members */

static int saw_member(void *context, const struct tar_member *member, error *err)
{
    (void) context;
    (void) err;
    size_t at = strlen(seen);
    (void) snprintf(seen + at, sizeof seen - at, "%u %.99s %.99s %llu;", (unsigned) member->type,
                    member->path, member->link, (unsigned long long) member->size);
    return 0;
}

static int saw_bytes(void *context, const void *bytes, size_t size, error *err)
{
    (void) err;
    *(uint64_t *) context += size;
    (void) bytes;
    return 0;
}

static int saw_end(void *context, const struct tar_member *member, error *err)
{
    (void) context;
    (void) member;
    (void) err;
    ends++;
    return 0;
}

static int saw_hole(void *context, uint64_t size, error *err)
{
    (void) context;
    (void) err;
    size_t at = strlen(seen);
    (void) snprintf(seen + at, sizeof seen - at, "hole %llu;", (unsigned long long) size);
    return 0;
}

static uint64_t total;
static struct tar_user user = { &total, saw_member, saw_bytes, saw_end, NULL };

static void set_checksum(char *to)
{
    unsigned sum = 0;
    memset(to + 148, ' ', 8);
    for (int i = 0; i < TAR_BLOCK; i++)
        sum += (unsigned char) to[i];
    (void) snprintf(to + 148, 8, "%06o", sum);
}

/* A header of ustar; faults are put in before the checksum is computed. */
static void header(char *to, const char *name, char type, const char *size, const char *link)
{
    memset(to, 0, TAR_BLOCK);
    /* NOLINTBEGIN(bugprone-not-null-terminated-result): fields of a header that is zero already */
    memcpy(to, name, strlen(name));
    memcpy(to + 100, "0000644", 8);
    memcpy(to + 124, size, strlen(size));
    memcpy(to + 136, "00000000000", 12);
    to[156] = type;
    memcpy(to + 157, link, strlen(link));
    memcpy(to + 257,
           "ustar\0"
           "00",
           8);
    /* NOLINTEND(bugprone-not-null-terminated-result) */
    set_checksum(to);
}

/* The header of a part of a file with holes. */
static void part_header(char *to, char type, const char *hole, const char *size)
{
    header(to, "", type, size, "");
    memset(to + 136, 0, 12);
    memcpy(to + 136, hole, strlen(hole)); /* NOLINT(bugprone-not-null-terminated-result) */
    set_checksum(to);
}

static int read_all(const char *tar, size_t size, size_t piece, error *err)
{
    static struct tar_reader reader;
    seen[0] = '\0';
    ends = 0;
    total = 0;
    tar_reader_open(&reader);
    for (size_t at = 0; at < size; at += piece)
        if (tar_reader_take(&reader, tar + at, size - at < piece ? size - at : piece, &user, err) <
            0)
            return -1;
    return tar_reader_end(&reader, err);
}

TEST(a_tar_is_taken_apart_in_pieces_of_any_size)
{
    static char tar[8 * TAR_BLOCK];
    static const char records[] = "19 path=long/name\xff\n14 size=00600\n";
    header(tar, "./a/", '5', "00000000000", "");
    header(tar + 512, "x", 'x', "00000000041", "");
    memcpy(tar + 1024, records, sizeof records - 1);
    header(tar + 1536, "short", '0', "00000000001", "");
    header(tar + 3072, "l", '2', "0", "/etc/passwd");
    for (size_t piece = 1; piece < 1100; piece += piece < 8 ? 1 : 97) {
        error err = { 0 };
        int result = read_all(tar, sizeof tar, piece, &err);
        expect(result == 0, "pieces of %zu: %s", piece, err.text);
        expect(strcmp(seen, "1 a  0;0 long/name\xff  600;2 l /etc/passwd 0;") == 0, "'%s'", seen);
        expect(total == 600, "%llu bytes", (unsigned long long) total);
    }
}

TEST(a_hostile_tar_is_refused)
{
    static const struct {
        const char *name;
        char type;
        const char *size;
        const char *link;
        const char *why;
    } facts[] = {
        { "../x", '0', "0", "", "not a path" },
        { "a/../../x", '0', "0", "", "not a path" },
        { "/..", '5', "0", "", "not a path" },
        { "a//b", '0', "0", "", "not a path" },
        { "h", '1', "0", "../../x", "not a path" },
        { "h", '1', "0", "a/./b", "not a path" },
        { "x", '0', "12a", "", "not a tar" },
        { "x", '0', "\xff\xff\xff\xff\xff\xff\xff\xff\xff", "", "not a tar" },
        { "x", '0', "\x80\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01", "", "not a tar" },
        { "x", 'x', "00000300000", "", "extension" },
        { "x", 'L', "0", "", "name" },
        { "x", 'S', "0", "", "sparse" },
        { "", '0', "0", "", "without a name" },
    };
    for_each(fact, facts) {
        static char tar[3 * TAR_BLOCK];
        error err = { 0 };
        memset(tar, 0, sizeof tar);
        header(tar, fact->name, fact->type, fact->size, fact->link);
        int result = read_all(tar, sizeof tar, 512, &err);
        /* an empty extension ends when another entry follows */
        expect(result < 0 && strstr(err.text, fact->why), "'%s' '%c': %d '%s'", fact->name,
               fact->type, result, err.text);
    }
}

TEST(an_extension_is_read_or_refused)
{
    static const struct {
        const char *records;
        int result;
    } facts[] = {
        { "9 path=a\n", 0 },    { "9 path=a", -1 },
        { "99 path=a\n", -1 },  { "0 path=a\n", -1 },
        { "x path=a\n", -1 },   { "10 path=..\n", -1 },
        { "8 path=\n", -1 },    { "7 a=bc\n", 0 },
        { "5 abc\n", -1 },      { "18446744073709551617 path=a\n", -1 },
        { "12 size=1z\n", -1 },
    };
    for_each(fact, facts) {
        static char tar[6 * TAR_BLOCK];
        char size[16];
        error err = { 0 };
        memset(tar, 0, sizeof tar);
        (void) snprintf(size, sizeof size, "%o", (unsigned) strlen(fact->records));
        header(tar, "x", 'x', size, "");
        memcpy(tar + 512, fact->records, strlen(fact->records));
        header(tar + 1024, "f", '0', "0", "");
        int result = read_all(tar, sizeof tar, 100, &err);
        expect(result == fact->result, "'%s' gave %d: %s", fact->records, result, err.text);
    }
}

/* The size of the file, then what each part says: all octal. */
TEST(a_file_with_holes_is_whole_or_refused)
{
    static const char none[] = "no part that fits the holes of 'f'";
    static const struct {
        const char *size;
        struct {
            char type;
            const char *hole, *size;
        } parts[3];
        const char *seen; /* NULL: refused */
        const char *why;
    } facts[] = {
        { "0", { { 0 } }, "0 f  0;", NULL },
        { "12", { { 'M', "12", "0" } }, "0 f  10;hole 10;", NULL },
        { "12", { { 'M', "0", "12" } }, "0 f  10;", NULL },
        { "12", { { 'M', "1", "11" } }, "0 f  10;hole 1;", NULL },
        { "12", { { 'M', "0", "11" }, { 'M', "1", "0" } }, "0 f  10;hole 1;", NULL },
        { "12", { { 'M', "2", "3" }, { 'M', "5", "0" } }, "0 f  10;hole 2;hole 5;", NULL },
        { "12", { { 'M', "0", "0" }, { 'M', "11", "1" } }, "0 f  10;hole 9;", NULL },
        { "400000000000",
          { { 'M', "377777777777", "1" } },
          "0 f  34359738368;hole 34359738367;",
          NULL },
        { "12", { { 'M', "13", "0" } }, NULL, none },
        { "12", { { 'M', "0", "13" } }, NULL, none },
        { "12", { { 'M', "12", "1" } }, NULL, none },
        { "12", { { 'M', "1", "1" }, { 'M', "1", "10" } }, NULL, none },
        { "12", { { 'M', "\x80\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01", "1" } }, NULL, none },
        { "12", { { 'M', "1x", "1" } }, NULL, none },
        { "12", { { '0', "0", "12" } }, NULL, none },
        { "12", { { 'x', "0", "12" } }, NULL, none },
        { "12", { { 'S', "0", "12" } }, NULL, none },
        { "12", { { 'M', "1", "1" }, { '5', "0", "0" } }, NULL, none },
        { "12", { { 0 } }, NULL, "not a tar" }, /* an end where a part is due */
    };
    user.hole = saw_hole;
    for_each(fact, facts) {
        static char tar[10 * TAR_BLOCK];
        memset(tar, 0, sizeof tar);
        header(tar, "f", 'S', fact->size, "");
        size_t at = TAR_BLOCK;
        for_each(part, fact->parts) {
            if (part->type == 0)
                break;
            part_header(tar + at, part->type, part->hole, part->size);
            at += (size_t) (part->size[0] == '0' ? 1 : 2) * TAR_BLOCK;
        }
        for (size_t piece = 1; piece <= sizeof tar; piece += piece < 8 ? 1 : 97) {
            error err = { 0 };
            int result = read_all(tar, sizeof tar, piece, &err);
            size_t row = (size_t) (fact - facts);
            if (fact->seen)
                expect(result == 0 && strcmp(seen, fact->seen) == 0 && ends == 1,
                       "%zu: %d '%s', %u ends, '%s'", row, result, err.text, ends, seen);
            else
                expect(result < 0 && strstr(err.text, fact->why) && ends == 0, "%zu: %d '%s'", row,
                       result, err.text);
        }
    }
    user.hole = NULL;
}

/* The tar may end after any byte. */
TEST(a_file_with_holes_does_not_end_early)
{
    static char tar[3 * TAR_BLOCK];
    header(tar, "f", 'S', "12", "");
    part_header(tar + 512, 'M', "11", "1");
    memset(tar + 1024, 'd', 1);
    user.hole = saw_hole;
    for (size_t size = 1; size <= sizeof tar; size++) {
        error err = { 0 };
        int result = read_all(tar, size, 512, &err);
        expect((result == 0) == (size == sizeof tar), "%zu: %d '%s'", size, result, err.text);
    }
    expect(total == 1 && ends == 1, "%llu bytes, %u ends", (unsigned long long) total, ends);
    user.hole = NULL;
}

TESTS(CASE(a_tar_is_taken_apart_in_pieces_of_any_size), CASE(a_hostile_tar_is_refused),
      CASE(an_extension_is_read_or_refused), CASE(a_file_with_holes_is_whole_or_refused),
      CASE(a_file_with_holes_does_not_end_early))
