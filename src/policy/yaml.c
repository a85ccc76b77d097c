/* yaml.c - converts libfyaml's events to the table of nodes, with a limit for everything. */
#include "policy/yaml.h"

#include "base/table.h"
#include "base/text.h"

#include <libfyaml.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LABEL_MAX = 96,
    LABEL_MIN = 16,
    PLACE_SIZE = 24,               /* "...", line, column and separators */
    ENDS_MAX = 2 * YAML_NODES_MAX, /* bytes at the end of texts: NUL, and a line feed for a block */
};

struct builder {
    struct yaml *yaml;
    struct fy_parser *parser;
    const char *text; /* the file */
    size_t length;
    size_t text_used; /* of yaml->texts, which has room for the whole file and ENDS_MAX */
    unsigned open[YAML_DEPTH_MAX];       /* the mappings and sequences around the next node */
    unsigned last_child[YAML_DEPTH_MAX]; /* of each of them */
    int depth;
    int line, column; /* of the current event */
    bool has_root;
};

/* A long label is cut at its beginning, so that its end and the message fit. */
static int fail_at(const char *label, int line, int column, error *err, const char *text)
{
    size_t length = strlen(label), needed = strlen(text) + PLACE_SIZE;
    size_t room = sizeof err->text > needed + LABEL_MIN ? sizeof err->text - needed : LABEL_MIN;
    room = room < LABEL_MAX ? room : LABEL_MAX;
    bool cut = length > room;
    return fail(err, ERR_BAD_REQUEST, "%s%s:%d:%d: %s", cut ? "..." : "",
                label + (cut ? length - room : 0), line, column, text);
}

int yaml_fail(const struct yaml *yaml, const struct yaml_node *node, error *err, const char *format,
              ...)
{
    char text[sizeof err->text];
    va_list values;
    va_start(values, format);
    (void) vsnprintf(text, sizeof text, format, values);
    va_end(values);
    return fail_at(yaml->label, node->line, node->column, err, text);
}

int yaml_under(const struct yaml *yaml, const struct yaml_node *node, error *err)
{
    char text[sizeof err->text];
    memcpy(text, err->text, sizeof text);
    text[sizeof text - 1] = '\0';
    return fail_at(yaml->label, node->line, node->column, err, text);
}

static int refuse(const struct builder *builder, error *err, const char *text)
{
    return fail_at(builder->yaml->label, builder->line, builder->column, err, text);
}

/* Refuses bytes that are not text, before the parser gets them. */
static int check_text(const char *label, const char *text, size_t length, error *err)
{
    size_t unclean = text_find_unclean(text, length);
    if (unclean == length)
        return 0;
    int line = 1, column = 1;
    for (size_t i = 0; i < unclean; i++) {
        column = text[i] == '\n' ? 1 : column + ((text[i] & 0xc0) != 0x80);
        line += text[i] == '\n';
    }
    return fail_at(label, line, column, err,
                   text[unclean] == '\r' ? "a carriage return; end lines with a line feed only"
                                         : "not UTF-8 text or a control character; remove it");
}

/* Adds a node to the innermost open one. Nodes and texts are allocated for the largest document. */
static int add_node(struct builder *builder, enum yaml_kind kind, error *err)
{
    struct yaml *yaml = builder->yaml;
    if (yaml->count >= YAML_NODES_MAX)
        return refuse(builder, err, "more than 2048 values; make the file smaller");
    if (builder->depth == 0 && builder->has_root)
        return refuse(builder, err, "a second document; one file holds one");
    builder->has_root = true;

    unsigned index = yaml->count++;
    yaml->nodes[index] = (struct yaml_node){
        .kind = kind,
        .line = builder->line,
        .column = builder->column,
        .text = "",
    };
    if (builder->depth > 0) {
        int inner = builder->depth - 1;
        struct yaml_node *parent = &yaml->nodes[builder->open[inner]];
        if (parent->children++ == 0)
            parent->first = index;
        else
            yaml->nodes[builder->last_child[inner]].next = index;
        builder->last_child[inner] = index;
    }
    return 0;
}

static int open_node(struct builder *builder, enum yaml_kind kind, error *err)
{
    if (builder->depth >= YAML_DEPTH_MAX)
        return refuse(builder, err, "nested too deeply; 24 levels are read");
    if (add_node(builder, kind, err) < 0)
        return -1;
    builder->open[builder->depth++] = builder->yaml->count - 1;
    return 0;
}

/* The character of an escape in a "text", 0 if it is not supported. */
static char escaped(char letter)
{
    static const struct {
        char letter, stands_for;
    } escapes[] = { { 'n', '\n' }, { 't', '\t' }, { '"', '"' }, { '\\', '\\' }, { '/', '/' } };
    for_each(escape, escapes)
        if (escape->letter == letter)
            return escape->stands_for;
    return 0;
}

/* Decodes a text from the bytes of the file. libfyaml's own function leaks memory and grows the
 * stack on odd texts (its issues 233 and 315); so texts of several lines are not supported. */
static int decode(struct builder *builder, enum fy_scalar_style style, const char *text,
                  size_t length, error *err)
{
    char *out = builder->yaml->texts + builder->text_used;
    size_t used = 0;
    if (memchr(text, '\n', length))
        return refuse(builder, err, "a text over several lines; write it in one or after '|'");
    for (size_t i = 0; i < length; i++) {
        char letter = text[i];
        if (style == FYSS_SINGLE_QUOTED && letter == '\'')
            i++; /* a doubled quote */
        if (style == FYSS_DOUBLE_QUOTED && letter == '\\') {
            if (++i < length)
                letter = escaped(text[i]);
            if (i >= length || !letter)
                return refuse(builder, err, "an escape; only \\n \\t \\\" \\\\ and \\/ are read");
        }
        out[used++] = letter;
    }
    out[used] = '\0';
    struct yaml_node *node = &builder->yaml->nodes[builder->yaml->count - 1];
    node->text = out;
    node->length = used;
    node->empty = used == 0 && style == FYSS_PLAIN;
    node->quoted = style != FYSS_PLAIN;
    builder->text_used += used + 1;
    return 0;
}

/* Decodes a block ("|"): its lines without the first one's indentation, and one line feed. */
static int decode_block(struct builder *builder, const char *text, size_t length, error *err)
{
    if (text == builder->text || text[-1] != '\n' || text - builder->text < 2 || text[-2] != '|')
        return refuse(builder, err, "a block with an indicator; end the line before it with '|'");
    char *out = builder->yaml->texts + builder->text_used;
    size_t used = 0, indent = 0, at = 0;
    while (at < length) {
        const char *line = text + at;
        const char *end = memchr(line, '\n', length - at);
        size_t size = end ? (size_t) (end - line) : length - at, blanks = 0;
        while (blanks < size && line[blanks] == ' ')
            blanks++;
        if (indent == 0 && blanks < size)
            indent = blanks;
        if (blanks < indent && blanks < size)
            return refuse(builder, err, "a block whose lines begin further left than its first");
        size_t skip = blanks < indent ? blanks : indent;
        memcpy(out + used, line + skip, size - skip);
        used += size - skip;
        out[used++] = '\n';
        at += size + 1;
    }
    while (used > 1 && out[used - 1] == '\n' && out[used - 2] == '\n')
        used--;
    out[used] = '\0';
    struct yaml_node *node = &builder->yaml->nodes[builder->yaml->count - 1];
    node->text = out;
    node->length = used;
    node->quoted = true;
    builder->text_used += used + 1;
    return 0;
}

static int add_text(struct builder *builder, struct fy_token *token, error *err)
{
    if (add_node(builder, YAML_TEXT, err) < 0)
        return -1;
    const struct fy_mark *start = token ? fy_token_start_mark(token) : NULL;
    const struct fy_mark *end = token ? fy_token_end_mark(token) : NULL;
    if (!start || !end)
        return decode(builder, FYSS_PLAIN, "", 0, err);
    enum fy_scalar_style style = fy_token_scalar_style(token);
    /* Texts do not overlap, so they always fit; this check does not rely on that. */
    size_t room = builder->length + ENDS_MAX - builder->text_used;
    if (start->input_pos > end->input_pos || end->input_pos > builder->length ||
        end->input_pos - start->input_pos + 2 > room)
        return refuse(builder, err, "a text that cannot be found again; write it in quotes");
    size_t length = end->input_pos - start->input_pos;
    if (style == FYSS_LITERAL)
        return decode_block(builder, builder->text + start->input_pos, length, err);
    if (style == FYSS_FOLDED)
        return refuse(builder, err, "a folded block (>); write it in one line or after '|'");
    return decode(builder, style, builder->text + start->input_pos, length, err);
}

/* libfyaml's marks are after the character that begins a quoted text, an anchor or an alias. */
static void set_place(struct builder *builder, struct fy_token *token, bool behind_sign)
{
    const struct fy_mark *mark = token ? fy_token_start_mark(token) : NULL;
    if (!mark)
        return; /* an implicit value has the position of the previous event */
    builder->line = mark->line + 1;
    builder->column = mark->column + (behind_sign ? 0 : 1);
}

static bool is_quoted(struct fy_token *token)
{
    enum fy_scalar_style style = token ? fy_token_scalar_style(token) : FYSS_PLAIN;
    return style == FYSS_SINGLE_QUOTED || style == FYSS_DOUBLE_QUOTED;
}

/* Handles one event. Anything with an anchor or a tag is refused. */
static int take_event(struct builder *builder, struct fy_event *event, error *err)
{
    struct fy_token *place = NULL, *anchor = NULL, *tag = NULL;
    switch (event->type) {
    case FYET_SCALAR:
        place = event->scalar.value;
        anchor = event->scalar.anchor;
        tag = event->scalar.tag;
        break;
    case FYET_SEQUENCE_START:
        place = event->sequence_start.sequence_start;
        anchor = event->sequence_start.anchor;
        tag = event->sequence_start.tag;
        break;
    case FYET_MAPPING_START:
        place = event->mapping_start.mapping_start;
        anchor = event->mapping_start.anchor;
        tag = event->mapping_start.tag;
        break;
    case FYET_ALIAS:
        set_place(builder, event->alias.anchor, true);
        return refuse(
            builder, err,
            "an alias (*name); write the value out, or quote a text that begins with a star");
    case FYET_SEQUENCE_END:
    case FYET_MAPPING_END:
        builder->depth--;
        return 0;
    case FYET_NONE:
    case FYET_STREAM_START:
    case FYET_STREAM_END:
    case FYET_DOCUMENT_START:
    case FYET_DOCUMENT_END:
        return 0;
    }
    if (anchor) {
        set_place(builder, anchor, true);
        return refuse(builder, err, "an anchor (&name); write the value where it is needed");
    }
    set_place(builder, tag ? tag : place, !tag && event->type == FYET_SCALAR && is_quoted(place));
    if (tag)
        return refuse(builder, err, "a tag (!name); remove it");
    if (event->type == FYET_SCALAR)
        return add_text(builder, event->scalar.value, err);
    return open_node(builder, event->type == FYET_MAPPING_START ? YAML_MAPPING : YAML_SEQUENCE,
                     err);
}

/* Fails with the parser's own message and its position. */
static int syntax_error(struct builder *builder, struct fy_diag *diag, error *err)
{
    void *previous = NULL;
    struct fy_diag_error *first = fy_diag_errors_iterate(diag, &previous);
    if (first && first->line > 0) {
        builder->line = first->line;
        builder->column = first->column;
    }
    char text[128];
    (void) snprintf(text, sizeof text, "no valid YAML: %s",
                    first && first->msg ? first->msg : "it cannot be parsed");
    size_t unclean = text_find_unclean(text, strlen(text));
    text[unclean] = '\0'; /* it quotes the file, and may be cut inside a character */
    return refuse(builder, err, text);
}

static int take_events(struct builder *builder, struct fy_diag *diag, error *err)
{
    for (;;) {
        struct fy_event *event = fy_parser_parse(builder->parser);
        if (!event)
            break;
        int result = take_event(builder, event, err);
        fy_parser_event_free(builder->parser, event);
        if (result < 0)
            return -1;
    }
    if (fy_parser_get_stream_error(builder->parser))
        return syntax_error(builder, diag, err);
    if (!builder->has_root)
        return refuse(builder, err, "the file is empty; write at least a name");
    return 0;
}

static int parse(struct builder *builder, error *err)
{
    struct fy_diag_cfg quiet;
    fy_diag_cfg_default(&quiet);
    quiet.fp = NULL;
    struct fy_diag *diag = fy_diag_create(&quiet);
    if (!diag)
        return fail(err, ERR_INTERNAL, "out of memory");
    fy_diag_set_collect_errors(diag, true);
    struct fy_parse_cfg config = { .flags = FYPCF_QUIET, .diag = diag };
    builder->parser = fy_parser_create(&config);
    int result = -1;
    if (!builder->parser ||
        fy_parser_set_string(builder->parser, builder->text, builder->length) < 0)
        (void) fail(err, ERR_INTERNAL, "out of memory");
    else
        result = take_events(builder, diag, err);
    fy_parser_destroy(builder->parser);
    fy_diag_destroy(diag);
    return result;
}

int yaml_init(struct yaml *ret_yaml, const char *label, const char *text, size_t length, error *err)
{
    if (check_text(label, text, length, err) < 0)
        return -1;
    struct yaml yaml = {
        .label = label,
        .nodes = calloc(YAML_NODES_MAX, sizeof *yaml.nodes),
        .texts = malloc(length + ENDS_MAX),
    };
    struct builder builder = {
        .yaml = &yaml,
        .text = text,
        .length = length,
        .line = 1,
        .column = 1,
    };
    int result =
        yaml.nodes && yaml.texts ? parse(&builder, err) : fail(err, ERR_INTERNAL, "out of memory");
    if (result < 0)
        yaml_done(&yaml);
    else
        *ret_yaml = yaml;
    return result;
}

void yaml_done(struct yaml *yaml)
{
    free(yaml->nodes);
    free(yaml->texts);
    *yaml = (struct yaml){ .label = yaml->label };
}

const struct yaml_node *yaml_first(const struct yaml *yaml, const struct yaml_node *parent)
{
    return parent->children > 0 ? &yaml->nodes[parent->first] : NULL;
}

const struct yaml_node *yaml_next(const struct yaml *yaml, const struct yaml_node *node)
{
    return node->next > 0 ? &yaml->nodes[node->next] : NULL;
}
