/* files.c - `glovebox session files`. */
#include "cli/session/session.h"

#include "cli/commands.h"

#include <stdio.h>

/* Names come from the sandbox, so control bytes and newlines are filtered for the terminal. */
static void print_entry(json_object *entry)
{
    char line[8192];
    int length = snprintf(line, sizeof line, "%-7s %12lld  ", answer_text(entry, "type"),
                          (long long) json_object_get_int64(json_member(entry, "bytes")));
    size_t used =
        line_add_harmless(line, (size_t) length, sizeof line - 1, answer_text(entry, "path"));
    line[used] = '\0';
    print_filtered(line);
}

int session_files(struct session_arguments *arguments, error *err)
{
    auto_text json = NULL;
    int32_t code = glb_session_files(arguments->client, arguments->session,
                                     arguments->count > 1 ? arguments->words[1] : NULL, 1, &json);
    if (code != GLB_OK)
        return library_failed(code, err);
    auto_json root = json_tokener_parse(json);
    session_print_list(arguments, list_of(root, "entries"), print_entry);
    return 0;
}
