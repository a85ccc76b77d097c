/* package_card.c - see package_card.h. */
#include "cli/operate/package_card.h"

#include "cli/common/approval_card.h"
#include "template/approved.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Texts from the package are filtered, so that the terminal obeys none of them. */
static void print_list(const char *head, json_object *file, const char *member, const char *after)
{
    json_object *list = json_object_object_get(file, member);
    size_t count = list ? json_object_array_length(list) : 0;
    if (count == 0)
        return;
    (void) printf("    %-13s", head);
    for (size_t index = 0; index < count; index++) {
        (void) fputs(index ? ", " : "", stdout);
        card_print_text(stdout, json_object_get_string(json_object_array_get_idx(list, index)));
    }
    (void) puts(after);
}

static void print_line(const char *head, const char *text)
{
    if (!*text)
        return;
    (void) printf("    %-13s", head);
    card_print_text(stdout, text);
    (void) fputc('\n', stdout);
}

static bool is_empty(json_object *file, const char *member)
{
    json_object *list = json_object_object_get(file, member);
    return !list || json_object_array_length(list) == 0;
}

static void print_file(json_object *file, bool is_apt)
{
    int64_t bytes = json_object_get_int64(json_object_object_get(file, "bytes"));
    int64_t unpacked = json_object_get_int64(json_object_object_get(file, "unpacked"));
    bool machine_code = json_object_get_boolean(json_object_object_get(file, "machine_code"));
    (void) printf("  ");
    card_print_text(stdout, approved_text(file, "name"));
    (void) fputc(' ', stdout);
    card_print_text(stdout, approved_text(file, "version"));
    (void) fputc('\n', stdout);
    if (strcmp(approved_text(file, "place"), approved_text(file, "name")) != 0)
        print_line("place", approved_text(file, "place"));
    print_line("about", approved_text(file, "about"));
    print_line("archive", approved_text(file, "file"));
    (void) printf("    %-13s%" PRId64 " KiB, %" PRId64 " KiB unpacked\n", "size",
                  (bytes + 1023) / 1024, (unpacked + 1023) / 1024);
    print_line("sha256", approved_text(file, "sha256"));
    print_line("integrity", approved_text(file, "integrity"));
    print_line("licence", approved_text(file, "licence"));
    print_line("maintainer", approved_text(file, "maintainer"));
    print_list("needs", file, "needs",
               is_apt ? ": come along from the same sources, with scripts of their own" : "");
    print_list("commands", file, "commands", "");
    print_line("machine code", machine_code ? "yes" : "no");
    if (is_empty(file, "runs_at_install"))
        print_line("at install",
                   is_apt ? "nothing of it runs" : "nothing of it runs: it is unpacked");
    print_list("at install", file, "runs_at_install",
               ": run in the build, as root of a user namespace, without network and host");
    print_list("left out", file, "not_run", ": not run, not installed");
    print_list("at start", file, "runs_at_start",
               ": its lines run whenever Python starts in a sandbox, and in the build where the "
               "recipe's own commands start it");
    if (machine_code)
        print_line("", "its machine code runs when a program imports or starts it");
}

void libs_card_print(json_object *request)
{
    json_object *review = json_object_object_get(request, "review");
    json_object *files = json_object_object_get(review, "files");
    const char *replaces = approved_text(review, "replaces");
    (void) printf("%s  %s\n  %s, for template %s; asked by %s on %s\n",
                  approved_text(request, "id"), approved_text(request, "state"),
                  approved_text(request, "manager"), approved_text(request, "template"),
                  approved_text(request, "asked_by"), approved_text(request, "asked"));
    if (*approved_text(request, "reason"))
        (void) printf("  because: %s\n", approved_text(request, "reason"));
    (void) printf("  from ");
    card_print_text(stdout, approved_text(review, "source"));
    (void) printf(", for ");
    card_print_text(stdout, approved_text(review, "for"));
    (void) fputc('\n', stdout);
    if (*replaces) {
        (void) printf("  takes the place of version ");
        card_print_text(stdout, replaces);
        (void) puts(", which the template has");
    }
    for (size_t index = 0; index < json_object_array_length(files); index++) {
        if (index == 1)
            (void) puts("  and with it:");
        print_file(json_object_array_get_idx(files, index),
                   strcmp(approved_text(request, "manager"), "apt") == 0);
    }
    if (strcmp(approved_text(request, "state"), "reviewed") == 0)
        (void) printf("glovebox libs approve %s, or glovebox libs deny %s\n",
                      approved_text(request, "id"), approved_text(request, "id"));
}
