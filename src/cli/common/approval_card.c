/* approval_card.c - see approval_card.h. */
#include "cli/common/approval_card.h"

#include "base/clock.h"
#include "base/table.h"
#include "base/timestamp.h"
#include "base/utf8.h"
#include "cli/daemon_request.h"

#include <inttypes.h>
#include <string.h>

/* Letters that interpreters convert to ASCII when they normalise names. */
static bool is_disguised(uint32_t point)
{
    return (point >= 0xFF01 && point <= 0xFF5E) || (point >= 0x1D400 && point <= 0x1D7FF);
}

/* Alphabets with letters that look like those of ASCII. */
static bool is_lookalike(uint32_t point)
{
    static const struct {
        uint32_t first, last;
    } alphabets[] = { { 0x0370, 0x03FF }, { 0x0400, 0x052F }, { 0x0530, 0x058F },
                      { 0x10A0, 0x10FF }, { 0x13A0, 0x13FF }, { 0x1C80, 0x1C8F },
                      { 0x2C80, 0x2CFF }, { 0x2DE0, 0x2DFF }, { 0xA640, 0xA69F } };
    for_each(alphabet, alphabets)
        if (point >= alphabet->first && point <= alphabet->last)
            return true;
    return false;
}

static bool is_ascii_letter(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

enum { WORD_LOOKED_AT = 64, BLANK_MAX = 3 }; /* bytes on each side; blank lines that are shown */

/* Does the word around this character also have letters of ASCII? */
static bool is_mixed(const char *text, size_t size, size_t at)
{
    static const char ends[] = " \t\n\r()[]{}.,;:'\"=+-*/<>!?&|^~%#@`$\\";
    size_t first = at;
    while (first > 0 && at - first < WORD_LOOKED_AT &&
           (text[first - 1] == '\0' || !strchr(ends, text[first - 1])))
        first--;
    size_t last = size - at > WORD_LOOKED_AT ? at + WORD_LOOKED_AT : size;
    for (; first < last && (text[first] == '\0' || !strchr(ends, text[first])); first++)
        if (is_ascii_letter(text[first]))
            return true;
    return false;
}

/* Prints the character at `place`. Returns how many bytes it has. */
static size_t print_character(FILE *out, const char *whole, size_t whole_size, size_t place)
{
    const char *text = whole + place;
    const unsigned char *at = (const unsigned char *) text;
    int length = utf8_character(at, whole_size - place);
    uint32_t point = length > 0 ? utf8_code_point(at, length) : 0xFFFD;
    bool is_trap =
        is_disguised(point) || (is_lookalike(point) && is_mixed(whole, whole_size, place));
    if (utf8_is_hidden(point) || is_trap || length <= 0)
        (void) fprintf(out, "<U+%04" PRIX32 ">", point);
    else
        (void) fwrite(text, 1, (size_t) length, out);
    return length > 0 ? (size_t) length : 1;
}

void card_print_text(FILE *out, const char *text)
{
    size_t size = strlen(text);
    for (size_t at = 0; at < size;)
        if (text[at] == '\n' || text[at] == '\t')
            (void) fprintf(out, "<U+%04X>", (unsigned) text[at++]);
        else
            at += print_character(out, text, size, at);
}

static void print_field(FILE *out, const char *name, const char *text)
{
    (void) fprintf(out, "%-9s ", name);
    card_print_text(out, text);
    (void) fputc('\n', out);
}

static size_t length_of(json_object *list)
{
    return json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
}

static void print_list(FILE *out, const char *name, json_object *list)
{
    size_t count = length_of(list);
    if (count > 0)
        (void) fprintf(out, "%-9s", name);
    for (size_t i = 0; i < count; i++) {
        (void) fputc(' ', out);
        card_print_text(out, json_object_get_string(json_object_array_get_idx(list, i)));
    }
    if (count > 0)
        (void) fputc('\n', out);
}

/* Prints the findings of the pre-check for this line. Returns whether there are any. */
static bool print_findings(FILE *out, json_object *findings, int line)
{
    bool is_any = false;
    for (size_t i = 0; i < length_of(findings); i++) {
        json_object *finding = json_object_array_get_idx(findings, i);
        if (json_object_get_int(json_member(finding, "line")) != line)
            continue;
        is_any = true;
        if (!out)
            continue;
        (void) fprintf(out, "        ^ %s: ", answer_text(finding, "decision"));
        card_print_text(out, answer_text(finding, "message"));
        (void) fputc('\n', out);
    }
    return is_any;
}

/* How many lines from `at` on are empty or blank; *ret_at is behind them. */
static int blank_lines(const char *code, size_t size, size_t at, size_t *ret_at)
{
    int count = 0;
    for (*ret_at = at; at < size; count++) {
        at += strspn(code + at, " \t\r");
        if (at >= size || code[at] != '\n')
            break;
        *ret_at = ++at;
    }
    return count;
}

/* Prints code by its length, not up to a NUL: shells execute what follows a NUL byte. */
static void print_code(FILE *out, json_object *text, json_object *findings)
{
    const char *code = json_object_get_string(text);
    size_t size = (size_t) json_object_get_string_len(text);
    int line = 1;
    for (size_t at = 0, next = 0; at < size; line++) {
        int blank = blank_lines(code, size, at, &next);
        if (blank > BLANK_MAX) { /* what follows must not be out of sight */
            (void) fprintf(out, "      | … %d blank lines …\n", blank);
            line += blank - 1;
            at = next;
            continue;
        }
        (void) fprintf(out, "%s%5d | ", print_findings(NULL, findings, line) ? "!" : " ", line);
        while (at < size && code[at] != '\n')
            if (code[at] == '\t')
                (void) fputc(code[at++], out);
            else
                at += print_character(out, code, size, at);
        at++;
        (void) fputc('\n', out);
        (void) print_findings(out, findings, line);
    }
}

/* So that a reader knows how much follows, and how much of it shows nothing. */
static void print_code_size(FILE *out, json_object *text)
{
    const char *code = json_object_get_string(text);
    size_t size = (size_t) json_object_get_string_len(text);
    int lines = 0, blank = 0;
    for (size_t at = 0, next; at < size;) {
        int more = blank_lines(code, size, at, &next);
        const char *end = memchr(code + next, '\n', size - next);
        lines += more + (next < size);
        blank += more;
        at = end ? (size_t) (end + 1 - code) : size;
    }
    (void) fprintf(out, "code      %d line%s, %d of them blank\n", lines, lines == 1 ? "" : "s",
                   blank);
}

static void print_content(FILE *out, const char *name, json_object *content)
{
    json_object *text = json_member(content, "text");
    (void) fprintf(out, "--- ");
    card_print_text(out, name);
    (void) fprintf(out, ", %" PRId64 " bytes%s\n",
                   json_object_get_int64(json_member(content, "bytes")),
                   text ? "" : ": NOT SHOWN (too large, or no text)");
    if (json_object_is_type(text, json_type_string))
        print_code(out, text, NULL);
}

static void print_inputs(FILE *out, json_object *card)
{
    json_object *files = json_member(card, "files");
    json_object *input = json_member(card, "stdin");
    for (size_t i = 0; i < length_of(files); i++) {
        json_object *file = json_object_array_get_idx(files, i);
        print_content(out, answer_text(file, "path"), file);
    }
    if (input)
        print_content(out, "stdin", input);
}

static void print_limits(FILE *out, json_object *limits)
{
    for (size_t i = 0; i < length_of(limits); i++) {
        json_object *limit = json_object_array_get_idx(limits, i);
        if (json_object_get_boolean(json_member(limit, "is_above")))
            (void) fprintf(out, "limit     %s %s; usual is %s\n", answer_text(limit, "name"),
                           answer_text(limit, "asked"), answer_text(limit, "usual"));
    }
}

static void print_hidden(FILE *out, json_object *hidden)
{
    if (length_of(hidden) > 0)
        (void) fprintf(out,
                       "BEWARE    %zu characters that reorder or hide text; they are written as "
                       "<U+…> below\n",
                       length_of(hidden));
}

static void print_time_left(FILE *out, json_object *approval)
{
    bool is_pending = strcmp(answer_text(approval, "state"), "pending") == 0;
    const char *end = answer_text(approval, is_pending ? "expires_at" : "until_at");
    int64_t left_s = (timestamp_read(end) - wall_clock_ms()) / 1000;
    bool is_open = is_pending || strcmp(answer_text(approval, "state"), "approved") == 0;
    if (is_open && left_s > 0)
        (void) fprintf(out, "%-9s %" PRId64 " min %" PRId64 " s, until %s\n",
                       is_pending ? "waits" : "holds", left_s / 60, left_s % 60, end);
}

/* Prints a key by its name, if it has one, and by its id, as in the log. */
static void print_key(FILE *out, json_object *approval, const char *field)
{
    char name_field[32];
    const char *id = answer_text(approval, field), *tenant = answer_text(approval, "tenant");
    (void) snprintf(name_field, sizeof name_field, "%s_name", field);
    const char *name = answer_text(approval, name_field);
    if (!*id)
        return;
    (void) fprintf(out, "%-9s ", field);
    if (*name) {
        card_print_text(out, name);
        (void) fputs(", key ", out);
    }
    card_print_text(out, id);
    if (*tenant && strcmp(field, "asker") == 0) {
        (void) fputs(", of tenant ", out);
        card_print_text(out, tenant);
    }
    (void) fputc('\n', out);
}

void card_print(FILE *out, json_object *approval)
{
    json_object *card = json_member(approval, "card");
    json_object *leaves = json_member(card, "leaves");
    print_field(out, "approval", answer_text(approval, "id"));
    print_field(out, "state", answer_text(approval, "state"));
    print_time_left(out, approval);
    print_key(out, approval, "asker");
    print_key(out, approval, "approver");
    print_field(out, "policy", answer_text(approval, "policy"));
    if (*answer_text(approval, "reason"))
        print_field(out, "reason", answer_text(approval, "reason"));
    if (!card)
        return;
    print_list(out, "because", json_member(card, "reasons"));
    if (*answer_text(card, "language"))
        print_field(out, "language", answer_text(card, "language"));
    if (*answer_text(card, "filename"))
        print_field(out, "filename", answer_text(card, "filename"));
    print_list(out, "network", json_member(card, "network"));
    print_limits(out, json_member(card, "limits"));
    for (size_t i = 0; i < length_of(leaves); i++)
        print_field(out, i == 0 ? "leaves" : "",
                    json_object_get_string(json_object_array_get_idx(leaves, i)));
    print_list(out, "variables", json_member(card, "environment_names"));
    print_list(out, "command", json_member(card, "command"));
    print_list(out, "arguments", json_member(card, "args"));
    print_hidden(out, json_member(card, "hidden_characters"));
    json_object *findings = json_member(json_member(card, "checks"), "findings");
    (void) print_findings(out, findings, 0);
    if (json_object_is_type(json_member(card, "code"), json_type_string)) {
        print_code_size(out, json_member(card, "code"));
        print_code(out, json_member(card, "code"), findings);
    }
    print_inputs(out, card);
}
