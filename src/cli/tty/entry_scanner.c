/* entry_scanner.c - see entry_scanner.h. One scanner serves the languages with similar grammars;
 * python, whose blocks end by indentation, has its own. */
#include "cli/tty/entry_scanner.h"

#include "base/table.h"
#include "model/languages.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

enum { DEPTH_MAX = 256 };

/* --- python ----------------------------------------------------------------------------------- */

/* Returns the end of the Python string that begins at `at`, NULL if it has none. */
static const char *after_literal(const char *at)
{
    char quote = *at;
    bool is_long = at[1] == quote && at[2] == quote;
    for (at += is_long ? 3 : 1; *at; at++) {
        if (*at == '\\' && at[1])
            at++;
        else if (*at == quote && (!is_long || (at[1] == quote && at[2] == quote)))
            return at + (is_long ? 3 : 1);
        else if (*at == '\n' && !is_long)
            return at; /* a syntax error; the interpreter reports it */
    }
    return is_long ? NULL : at;
}

/* Is a bracket or a long string open, or is there a backslash at the end? */
static bool is_open(const char *text)
{
    int depth = 0;
    while (*text) {
        if (*text == '\'' || *text == '"') {
            text = after_literal(text);
            if (!text)
                return true;
            continue;
        }
        if (*text == '#')
            text += strcspn(text, "\n");
        else if (*text == '\\' && strcmp(text, "\\\n") == 0)
            return true;
        else
            depth += strchr("([{", *text) ? 1 : strchr(")]}", *text) ? -1 : 0;
        text += *text != '\0';
    }
    return depth > 0;
}

static bool ends_with(const char *text, size_t size, const char *end)
{
    size_t length = strlen(end);
    return size >= length && memcmp(text + size - length, end, length) == 0;
}

/* Returns how many of the last lines are empty. */
static unsigned empty_lines(const char *entry)
{
    unsigned count = 0;
    for (size_t at = strlen(entry); at > 0 && strchr(" \t\n", entry[at - 1]); at--)
        count += entry[at - 1] == '\n';
    return count > 0 ? count - 1 : 0;
}

/* An empty line ends a block: an entry whose first line ends in ":" or begins with "@" or "%%". */
static bool python_is_whole(const char *entry)
{
    size_t first = strcspn(entry, "\n");
    if (is_open(entry))
        return false;
    bool is_block = ends_with(entry, first, ":") || entry[0] == '@' || strncmp(entry, "%%", 2) == 0;
    return !is_block || empty_lines(entry) > 0;
}

/* --- other languages -------------------------------------------------------------------------- */

struct manner {
    const char *language;
    const char *comment;
    const char *quotes;       /* each is its own closing quote */
    const char *long_quotes;  /* quotes that may span lines */
    const char *plain_quotes; /* quotes in which a backslash is an ordinary character */
    bool escapes;             /* outside of quotes a backslash escapes a character */
    bool is_shell;            /* has blocks between words, and here-documents */
    const char *last[24];     /* operators and words after which the entry goes on */
    const char *heads[8];     /* words that need a body after their brackets */
};

/* clang-format off */
static const struct manner manners[] = {
    { "bash",       "#",  "'\"`", "'\"`", "'", true,  true,  { "|", "&&" }, { NULL } },
    { "javascript", "//", "'\"`", "`",    "",  true,  false,
      { "+", "-", "*", "%", "=", "=>", "&", "|", "?", ",", ".", "<", "!", "~", "^", "else" }, { "if", "for", "while" } },
    { "r",          "#",  "'\"`", "'\"`", "",  false, false,
      { "+", "-", "*", "/", "^", "<", ">", "=", "~", "&", "|", ",", "!", "%", "$", "@", ":", "else" },
      { "if", "for", "while", "function" } },
};
/* clang-format on */

struct scan {
    const struct manner *manner;
    const char *text, *at;
    size_t depth;
    char open[DEPTH_MAX];
    int blocks;             /* open blocks of a shell */
    bool is_command;        /* the next word of a shell is a command */
    const char *after_body; /* end of the here-document; NULL: there is none */
    size_t head;            /* depth + 1 of the brackets after a word of `heads`; 0: none */
    bool expects_head;      /* such a word was just read */
    bool wants_body;        /* these brackets were just closed */
    const char *means;      /* end of the last code, without blanks and comments */
};

static bool is_one_of(const char *word, size_t size, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count && words[i]; i++)
        if (strlen(words[i]) == size && memcmp(words[i], word, size) == 0)
            return true;
    return false;
}

static bool is_of_word(char byte)
{
    return isalnum((unsigned char) byte) || byte == '_';
}

/* Returns false if the quote has no end. */
static bool pass_quote(struct scan *scan)
{
    char quote = *scan->at++;
    bool is_long = strchr(scan->manner->long_quotes, quote);
    bool is_plain = strchr(scan->manner->plain_quotes, quote);
    while (*scan->at && *scan->at != quote && (is_long || *scan->at != '\n'))
        scan->at += *scan->at == '\\' && !is_plain && scan->at[1] ? 2 : 1;
    if (!*scan->at)
        return false;
    scan->at += *scan->at == quote; /* else a syntax error, which the interpreter reports */
    return true;
}

static void pass_word(struct scan *scan)
{
    static const char *const begins[] = { "if", "case", "for", "while", "until", "select" };
    static const char *const ends[] = { "fi", "esac", "done" };
    static const char *const leads[] = { "then", "do",    "else",  "elif",
                                         "if",   "while", "until", "time" };
    const char *word = scan->at;
    bool is_name = word > scan->text && strchr("$.@", word[-1]);
    size_t size = 0;
    while (is_of_word(word[size]))
        size++;
    scan->at += size;
    if (scan->manner->is_shell) {
        if (scan->is_command && !is_name)
            scan->blocks += is_one_of(word, size, begins, COUNT_OF(begins)) -
                            is_one_of(word, size, ends, COUNT_OF(ends));
        scan->is_command = scan->is_command && is_one_of(word, size, leads, COUNT_OF(leads));
    } else {
        bool is_tail = scan->means > scan->text && scan->means[-1] == '}'; /* do {} while () */
        scan->expects_head =
            !is_name && !is_tail &&
            is_one_of(word, size, scan->manner->heads, COUNT_OF(scan->manner->heads));
    }
    scan->means = scan->at;
}

static void open_bracket(struct scan *scan)
{
    if (scan->depth < DEPTH_MAX)
        scan->open[scan->depth] = *scan->at;
    scan->depth++;
    if (*scan->at == '(' && scan->expects_head && scan->head == 0)
        scan->head = scan->depth;
}

/* A bracket that closes nothing is ignored: patterns in a shell's `case` end in ")". */
static void close_bracket(struct scan *scan)
{
    static const char pairs[] = "()[]{}";
    const char *pair = strchr(pairs, *scan->at);
    if (scan->depth == 0 || (scan->depth <= DEPTH_MAX && scan->open[scan->depth - 1] != pair[-1]))
        return;
    scan->wants_body = scan->head == scan->depth;
    if (scan->wants_body)
        scan->head = 0;
    scan->depth--;
}

/* Reads a here-document (<<WORD, <<-WORD, <<'WORD'), whose lines are no code. Returns false if it
 * has no end yet. */
static bool pass_here(struct scan *scan)
{
    const char *word = scan->at + 2;
    bool has_tabs = *word == '-';
    word += has_tabs;
    word += strspn(word, " \t");
    word += strspn(word, "'\"\\");
    size_t size = 0;
    while (is_of_word(word[size]))
        size++;
    scan->at = word + size;
    scan->at += size > 0 && strchr("'\"", *scan->at) && *scan->at;
    if (size == 0)
        return true;
    const char *line = scan->after_body ? scan->after_body : strchr(word, '\n');
    for (; line && line[0] && line[1]; line = strchr(line + 1, '\n')) {
        const char *begin = line + 1;
        begin += has_tabs ? strspn(begin, "\t") : 0;
        if (strncmp(begin, word, size) == 0 && begin[size] == '\n') {
            scan->after_body = begin + size;
            return true;
        }
    }
    return false;
}

static bool begins_comment(const struct scan *scan)
{
    const char *sign = scan->manner->comment;
    bool is_apart = scan->at == scan->text || strchr(" \t\n;(", scan->at[-1]);
    return strncmp(scan->at, sign, strlen(sign)) == 0 && (is_apart || !scan->manner->is_shell);
}

/* Steps over a character with no special meaning. */
static void pass_sign(struct scan *scan)
{
    char sign = *scan->at;
    scan->wants_body = false;
    if (strchr("([{", sign))
        open_bracket(scan);
    else if (strchr(")]}", sign))
        close_bracket(scan);
    scan->expects_head = false;
    scan->is_command = strchr(";&|({)!", sign);
    scan->at++;
    scan->means = scan->at;
}

/* Steps over the next element. Returns false if it has no end. */
static bool step(struct scan *scan)
{
    const struct manner *manner = scan->manner;
    const char *at = scan->at;
    bool is_here = manner->is_shell && strncmp(at, "<<", 2) == 0 && scan->depth < 2;
    if (*at == '\n') {
        scan->is_command = true;
        scan->at = scan->after_body ? scan->after_body : at + 1;
        scan->after_body = NULL;
    } else if (*at == ' ' || *at == '\t' || *at == '\r') {
        scan->at++;
    } else if (begins_comment(scan)) {
        scan->at += strcspn(at, "\n");
    } else if (manner->comment[0] == '/' && strncmp(at, "/*", 2) == 0) {
        const char *end = strstr(at + 2, "*/");
        scan->at = end ? end + 2 : at;
        return end;
    } else if (*at == '\\' && manner->escapes) {
        scan->at += at[1] ? 2 : 1;
        scan->means = scan->at;
        return at[1] && strcmp(at, "\\\n") != 0;
    } else if (is_here && at[2] == '<') {
        scan->at += 3;
    } else if (is_here) {
        return pass_here(scan);
    } else if (strchr(manner->quotes, *at)) {
        scan->wants_body = scan->is_command = scan->expects_head = false;
        bool has_end = pass_quote(scan);
        scan->means = scan->at;
        return has_end;
    } else if (is_of_word(*at)) {
        scan->wants_body = false;
        pass_word(scan);
    } else {
        pass_sign(scan);
    }
    return true;
}

static bool ends_openly(const struct scan *scan)
{
    size_t size = (size_t) (scan->means - scan->text);
    if (ends_with(scan->text, size, "++") || ends_with(scan->text, size, "--"))
        return false;
    for (size_t i = 0; i < COUNT_OF(scan->manner->last) && scan->manner->last[i]; i++) {
        const char *last = scan->manner->last[i];
        size_t before = size - strlen(last);
        if (ends_with(scan->text, size, last) &&
            !(isalpha((unsigned char) last[0]) && before > 0 && is_of_word(scan->text[before - 1])))
            return true;
    }
    return false;
}

static bool is_whole(const struct manner *manner, const char *entry)
{
    struct scan scan = {
        .manner = manner, .text = entry, .at = entry, .means = entry, .is_command = true
    };
    if (empty_lines(entry) >= 2)
        return true;
    while (*scan.at)
        if (!step(&scan))
            return false;
    return scan.depth == 0 && scan.blocks <= 0 && !scan.wants_body && !ends_openly(&scan);
}

bool entry_is_whole(const char *language, const char *entry)
{
    if (!language || language_is(language, "python"))
        return python_is_whole(entry);
    for_each(manner, manners)
        if (language_is(manner->language, language))
            return is_whole(manner, entry);
    return true;
}
