/* tool_file.c - file_write, file_read and file_list: small files of a session as text. Large ones
 * are for the native interface. file_import and file_export copy between a session and the user's
 * folder, which `glovebox mcp --files` opens: the bytes are beside the arguments. */
#include "base/base64.h"
#include "base/text.h"
#include "base/utf8.h"
#include "doors/mcp/mcp.h"
#include "engine/service/service_files.h"
#include "engine/service/service_files_json.h"
#include "json/payload.h"
#include "json/writer.h"

#include <inttypes.h>
#include <string.h>

enum {
    READ_DEFAULT = 64 * 1024,
    COPY_MAX = 16 << 20,
    LIST_MAX = 1000,
    BLOCK = 48 * 1024,
    GIVEN = 12 * 1024
};

static int need_session(struct mcp_call *call)
{
    error err;
    if (json_member(call->arguments, "session_id") || json_member(call->arguments, "session"))
        return 0;
    (void) fail(&err, ERR_BAD_REQUEST,
                "files belong to a session: give session_id, or session: \"mine\"");
    mcp_tool_fail(call, &err);
    return -1;
}

/* Begins a task for the path in the arguments. -1: the error was answered. */
static int begin_task(struct mcp_call *call, const struct file_order *wanted)
{
    struct file_order order = *wanted;
    struct exchange *exchange = call->exchange;
    struct json_object *path = json_member(call->arguments, "path");
    const char *file = member_text(call->arguments, "file");
    auto_bytes name = { 0 };
    error err;
    if (path)
        bytes_add(&name, json_object_get_string(path), (size_t) json_object_get_string_len(path));
    else if (file)
        bytes_add_text(&name, text_last_name(file));
    order.waker = (struct waker){ mcp_call_wake, call };
    order.session = call->work.session;
    order.path = &name;
    int result =
        service_file_begin(exchange->service, &exchange->caller, &order, &call->work.file, &err);
    if (result < 0)
        mcp_tool_fail(call, &err);
    return result;
}

/* True if the task is ready; answers with the error if it has failed. */
static bool is_ready(struct mcp_call *call)
{
    error err;
    int state = file_task_look(call->work.file, &err);
    if (state < 0)
        mcp_tool_fail(call, &err);
    return state == FILE_READY;
}

/* "[path: …; session …]" */
static void add_place(struct bytes *text, const struct mcp_call *call)
{
    bytes_print(text, "session %s%s", call->work.session, call->work.is_mine ? " (yours)" : "");
    if (call->work.note[0])
        bytes_print(text, ". %s", call->work.note);
}

static void open_content(struct mcp_call *call, struct bytes *text)
{
    struct bytes *out = mcp_result_open(call, NULL);
    json_open_field(out, "content", '[');
    out->failed |= text->failed;
    mcp_content_text(out, bytes_text(text), text->size);
}

/* --- file_write ------------------------------------------------------------------------------- */

static int read_content(struct mcp_call *call, error *err)
{
    struct json_object *text = json_member(call->arguments, "content");
    struct json_object *base64 = json_member(call->arguments, "content_base64");
    struct json_object *given = text ? text : base64;
    if (!given || (text && base64))
        return fail(err, ERR_BAD_REQUEST, "give either content or content_base64");
    size_t size = (size_t) json_object_get_string_len(given);
    if (base64)
        return payload_from_base64(&call->work.content, json_object_get_string(given), size, err);
    payload_from_text(&call->work.content, json_object_get_string(given), size);
    return 0;
}

static void tell_written(struct mcp_call *call)
{
    struct mcp_work *work = &call->work;
    struct file_entry entry;
    auto_bytes text = { 0 };
    const struct bytes *path = file_task_path(work->file);
    bytes_print(&text, "%" PRIu64 " bytes are in ", work->content.size);
    mcp_add_name(&text, path->data, path->size);
    bytes_add_text(&text, "; ");
    add_place(&text, call);
    open_content(call, &text);
    struct bytes *out = &call->out;
    json_close(out, ']');
    json_open_field(out, "structuredContent", '{');
    file_path_write(path->data, path->size, out);
    if (file_task_next_entry(work->file, &entry))
        file_facts_write(&entry, out);
    json_close(out, '}');
    json_flag_field(out, "isError", false);
    mcp_result_close(call);
}

static void write_more(struct mcp_call *call)
{
    struct mcp_work *work = &call->work;
    unsigned char block[GIVEN];
    error err;
    for (size_t size;
         (size = payload_read(&work->content, work->written, block, sizeof block)) > 0;) {
        ssize_t taken = file_task_give(work->file, (const char *) block, size, &err);
        if (taken == 0)
            return;
        if (taken < 0) {
            mcp_tool_fail(call, &err);
            return;
        }
        work->written += (uint64_t) taken;
    }
    file_task_end_input(work->file);
    if (is_ready(call))
        tell_written(call);
}

static void begin_write(struct mcp_call *call)
{
    struct file_order order = { .action = FILE_WRITE };
    if (begin_task(call, &order) < 0)
        return;
    call->proceed = write_more;
    write_more(call);
}

void mcp_file_write(struct mcp_call *call)
{
    error err;
    if (read_content(call, &err) < 0)
        mcp_tool_fail(call, &err);
    else if (need_session(call) == 0)
        mcp_session_use(call, begin_write);
}

static const char content_name[] = "glovebox/content";

void mcp_file_import(struct mcp_call *call)
{
    const char *failure = member_text(call->params, "glovebox/failure");
    struct json_object *content = json_member(call->params, content_name);
    error err;
    if (failure) {
        mcp_tool_text(call, failure, true);
    } else if (!json_object_is_type(content, json_type_string)) {
        (void) fail(&err, ERR_BAD_REQUEST, "the file is missing; restart glovebox mcp and retry");
        mcp_tool_fail(call, &err);
    } else if (payload_from_base64(&call->work.content, json_object_get_string(content),
                                   (size_t) json_object_get_string_len(content), &err) < 0) {
        mcp_tool_fail(call, &err);
    } else if (need_session(call) == 0) {
        mcp_session_use(call, begin_write);
    }
}

/* --- file_read and file_export ---------------------------------------------------------------- */

static void write_blob(struct bytes *out, const char *mime, const struct bytes *bytes)
{
    bool is_image = strncmp(mime, "image/", 6) == 0 && strcmp(mime, "image/svg+xml") != 0;
    json_open(out, '{');
    json_string_field(out, "type", is_image ? "image" : "resource");
    if (!is_image) {
        json_open_field(out, "resource", '{');
        json_string_field(out, "uri", "glovebox://file");
    }
    json_string_field(out, "mimeType", mime);
    json_key(out, is_image ? "data" : "blob");
    json_base64(out, bytes->data, bytes->size);
    if (!is_image)
        json_close_all(out, "}}");
}

static void tell_read(struct mcp_call *call)
{
    struct mcp_work *work = &call->work;
    struct file_entry facts;
    auto_bytes text = { 0 };
    const struct bytes *path = file_task_path(work->file);
    size_t size = work->read.size;
    file_task_facts(work->file, &facts);
    bool is_text = utf8_valid_size(work->read.data, size) + 4 > size &&
                   !memchr(bytes_text(&work->read), 0, size);
    if (is_text)
        bytes_add(&text, work->read.data, size);
    if (is_text && size > 0 && work->read.data[size - 1] != '\n')
        bytes_add_text(&text, "\n");
    bytes_add_text(&text, "[");
    mcp_add_name(&text, path->data, path->size);
    bytes_print(&text, ": %" PRIu64 " bytes, %zu from %" PRIu64 " are here; ", facts.size, size,
                work->written);
    add_place(&text, call);
    bytes_add_text(&text, "]");
    open_content(call, &text);
    if (!is_text)
        write_blob(&call->out, file_task_media_type(work->file), &work->read);
    json_close(&call->out, ']');
    json_flag_field(&call->out, "isError", false);
    mcp_result_close(call);
}

/* Encodes bytes as they arrive, so that no turn of the loop encodes all: whole groups of three
 * bytes, and the rest at the end. */
static void encode(struct mcp_work *work, bool is_end)
{
    size_t size = is_end ? work->read.size : work->read.size / 3 * 3;
    char *room = bytes_reserve(&work->encoded, base64_size(size) + 1);
    if (!room)
        return;
    base64_encode(work->read.data, size, room);
    work->encoded.size += base64_size(size);
    work->written += size;
    bytes_drop(&work->read, size);
}

/* The file is sent beside the content: `glovebox mcp` removes it there, and reports if it cannot
 * write it. */
static void tell_export(struct mcp_call *call)
{
    struct mcp_work *work = &call->work;
    const char *file = member_text(call->arguments, "file");
    auto_bytes text = { 0 };
    encode(work, true);
    bytes_print(&text, "%" PRIu64 " bytes are in ", work->written);
    if (file)
        mcp_add_name(&text, file, strlen(file));
    bytes_add_text(&text, " of the user's folder; ");
    add_place(&text, call);
    open_content(call, &text);
    json_close(&call->out, ']');
    json_key(&call->out, content_name);
    json_raw(&call->out, "\"", 1);
    bytes_add(&call->out, work->encoded.data, work->encoded.size);
    bytes_add_text(&call->out, "\"");
    call->out.failed |= work->encoded.failed;
    json_flag_field(&call->out, "isError", false);
    mcp_result_close(call);
}

static bool is_export(const struct mcp_call *call)
{
    return call->tool->files == FILES_WRITE;
}

static bool is_too_large(struct mcp_call *call)
{
    struct file_entry facts;
    error err;
    file_task_facts(call->work.file, &facts);
    if (!is_export(call) || facts.size <= COPY_MAX)
        return false;
    (void) fail(&err, ERR_TOO_LARGE, "the file has %" PRIu64 " bytes; at most %d are copied",
                facts.size, COPY_MAX);
    mcp_tool_fail(call, &err);
    return true;
}

static void read_more(struct mcp_call *call)
{
    struct mcp_work *work = &call->work;
    ssize_t got = FLOW_LATER;
    char *room;
    error err;
    if (!is_ready(call) || is_too_large(call))
        return;
    do {
        room = bytes_reserve(&work->read, BLOCK);
        got = room ? file_task_take(work->file, room, BLOCK) : FLOW_BROKEN;
        if (got > 0)
            work->read.size += (size_t) got;
    } while (got > 0);
    if (is_export(call))
        encode(work, false);
    if (got == FLOW_END) {
        is_export(call) ? tell_export(call) : tell_read(call);
    } else if (got != FLOW_LATER) {
        (void) fail(&err, ERR_CONFLICT, "the file has changed, or its session has ended");
        mcp_tool_fail(call, &err);
    }
}

static void begin_read(struct mcp_call *call)
{
    struct json_object *offset = json_member(call->arguments, "offset");
    struct json_object *bytes = json_member(call->arguments, "bytes");
    call->work.written = offset ? json_object_get_uint64(offset) : 0;
    struct file_order order = { .action = FILE_READ,
                                .from = call->work.written,
                                .size = bytes             ? json_object_get_uint64(bytes)
                                        : is_export(call) ? COPY_MAX
                                                          : READ_DEFAULT };
    if (begin_task(call, &order) < 0)
        return;
    call->proceed = read_more;
    read_more(call);
}

void mcp_file_read(struct mcp_call *call)
{
    if (need_session(call) == 0)
        mcp_session_use(call, begin_read);
}

/* --- file_list -------------------------------------------------------------------------------- */

static void tell_list(struct mcp_call *call)
{
    struct mcp_work *work = &call->work;
    struct file_entry entry;
    auto_bytes text = { 0 }, rows = { 0 };
    const struct bytes *path = file_task_path(work->file);
    size_t count = file_task_entries(work->file);
    bool is_cut = file_task_is_cut(work->file);
    json_open(&rows, '[');
    while (file_task_next_entry(work->file, &entry)) {
        file_entry_write(&entry, &rows);
        mcp_add_name(&text, entry.path, entry.path_size);
        bytes_print(&text, "  %s  %" PRIu64 " bytes\n", file_type_name(entry.mode), entry.size);
    }
    json_close(&rows, ']');
    bytes_print(&text, "[%zu entries%s; ", count, is_cut ? ", and more" : "");
    add_place(&text, call);
    bytes_add_text(&text, "]");
    open_content(call, &text);
    struct bytes *out = &call->out;
    json_close(out, ']');
    json_open_field(out, "structuredContent", '{');
    file_path_write(path->data ? path->data : "", path->size, out);
    json_flag_field(out, "truncated", is_cut);
    json_key(out, "entries");
    json_raw(out, rows.data, rows.size);
    json_close(out, '}');
    out->failed |= rows.failed;
    json_flag_field(out, "isError", false);
    mcp_result_close(call);
}

static void list_more(struct mcp_call *call)
{
    if (is_ready(call))
        tell_list(call);
}

static void begin_list(struct mcp_call *call)
{
    struct json_object *depth = json_member(call->arguments, "depth");
    struct file_order order = { .action = FILE_LIST,
                                .depth = depth ? json_object_get_uint64(depth) : 1,
                                .max = LIST_MAX };
    if (begin_task(call, &order) < 0)
        return;
    call->proceed = list_more;
    list_more(call);
}

void mcp_file_list(struct mcp_call *call)
{
    if (need_session(call) == 0)
        mcp_session_use(call, begin_list);
}
