/* package_requests.c - `glovebox libs request|review|approve|deny`: a user requests a package,
 * someone reviews and decides, and the next build of the template follows the decision. */
#include "cli/common/template_manifest.h"
#include "cli/operate/packages.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/table.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "cli/commands.h"
#include "cli/common/audit_event.h"
#include "cli/operate/package_card.h"
#include "cli/operate/template_view.h"
#include "supervisor/install_paths.h"
#include "template/approved.h"
#include "template/build.h"
#include "template/recipe.h"
#include "template/requests.h"
#include "template/review.h"
#include "json/member.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { REASON_MAX = 500 };

/* The folder of requests, locked against other processes. */
struct desk {
    char *state;
    int requests;
    json_object *request;
};

static void desk_done(struct desk *desk)
{
    free(desk->state);
    close_fd(&desk->requests);
    (void) json_object_put(desk->request);
}

#define auto_desk __attribute__((cleanup(desk_done))) struct desk

static int desk_open(struct desk *desk, const struct libs_arguments *arguments, const char *id,
                     error *err)
{
    if (path_of_state(arguments->state, &desk->state, err) < 0)
        return -1;
    if (access(desk->state, F_OK) < 0 && errno == ENOENT)
        return fail(err, ERR_NOT_FOUND,
                    "there is no '%.160s'; name another state with --state FOLDER", desk->state);
    desk->requests = requests_open(desk->state, true, err);
    if (desk->requests < 0)
        return -1;
    return id ? request_read(desk->requests, id, &desk->request, err) : 0;
}

/* Sets the caller, as "alice (1000)", and the time. */
static void set_who_and_when(json_object *object, const char *who, const char *when)
{
    char text[128];
    char moment[TIMESTAMP_SIZE];
    const struct passwd *user = getpwuid(getuid()); /* NOLINT(concurrency-mt-unsafe): one thread */
    (void) snprintf(text, sizeof text, "%s (%u)", user ? user->pw_name : "uid", getuid());
    member_set_text(object, who, text);
    member_set_text(object, when, timestamp_write(wall_clock_ms(), moment));
}

static int check_reason(const char *reason, error *err)
{
    size_t size = reason ? strlen(reason) : 0;
    if (size > REASON_MAX)
        return fail(err, ERR_BAD_REQUEST, "--reason is longer than %d bytes", REASON_MAX);
    if (reason && (text_find_unclean(reason, size) < size || strpbrk(reason, "\n\t")))
        return fail(err, ERR_BAD_REQUEST, "--reason is one line of text");
    return 0;
}

static json_object *files_of(json_object *request)
{
    json_object *review = json_object_object_get(request, "review");
    return review ? json_object_object_get(review, "files") : NULL;
}

static json_object *first_file(json_object *request)
{
    json_object *files = files_of(request);
    return files ? json_object_array_get_idx(files, 0) : NULL;
}

/* Records a request, review or decision in the log, with the user. */
static int tell(const struct libs_arguments *arguments, const char *kind, json_object *request,
                error *err)
{
    json_object *file = first_file(request);
    const struct event_field fields[] = {
        { "manager", approved_text(request, "manager"), 0 },
        { "package", approved_text(request, "name"), 0 },
        { "request", approved_text(request, "id"), 0 },
        { "sha256", file ? approved_text(file, "sha256") : "", 0 },
        { "template", approved_text(request, "template"), 0 },
        { "uid", NULL, (int64_t) getuid() },
        { "version", approved_text(file ? file : request, "version"), 0 },
        { 0 },
    };
    if (tell_audit(arguments->state, kind, fields, err) < 0)
        return under(err, "not done, since the log cannot tell of it");
    return 0;
}

static bool is_in_state(json_object *request, const char *state)
{
    return strcmp(approved_text(request, "state"), state) == 0;
}

static const char *manager_of(const struct libs_arguments *arguments)
{
    return arguments->npm ? "npm" : arguments->apt ? "apt" : "pip";
}

static const char *template_of(const struct libs_arguments *arguments)
{
    return arguments->template_name ? arguments->template_name : arguments->npm ? "node" : "python";
}

static int check_request(const struct libs_arguments *arguments, const char *name, error *err)
{
    const char *template_name = template_of(arguments);
    if (arguments->pip + arguments->apt + arguments->npm > 1)
        return fail(err, ERR_BAD_REQUEST, "a package is of pip, apt or npm; give one of the three");
    if (!review_name_is_valid(manager_of(arguments), name))
        return fail(err, ERR_BAD_REQUEST,
                    "'%.80s' is no name of a package; a version goes behind --version", name);
    if (!review_version_is_valid(arguments->version ? arguments->version : ""))
        return fail(err, ERR_BAD_REQUEST, "'%.80s' is no version, as in --version 1.0.0",
                    arguments->version);
    if (!recipe_name_is_valid(template_name))
        return fail(err, ERR_BAD_REQUEST, "'%.80s' is no name of a template", template_name);
    return check_reason(arguments->reason, err);
}

/* A review needs the built template, since packages in it are not fetched again. */
static void tell_next_step(const struct libs_arguments *arguments, json_object *request)
{
    auto_json manifest = NULL;
    error err;
    if (arguments->json)
        return;
    if (read_template_manifest(arguments->state, template_of(arguments), &manifest, &err) < 0)
        (void) complain("kept, but %s", err.text);
    (void) complain("review it with: glovebox libs review %s", approved_text(request, "id"));
}

int libs_request(const struct libs_arguments *arguments, const char *name, error *err)
{
    auto_desk desk = { .requests = -1 };
    if (check_request(arguments, name, err) < 0 || desk_open(&desk, arguments, NULL, err) < 0)
        return -1;
    json_object *request = desk.request = json_object_new_object();
    member_set_text(request, "state", "asked");
    member_set_text(request, "template", template_of(arguments));
    member_set_text(request, "manager", manager_of(arguments));
    member_set_text(request, "name", name);
    member_set_text(request, "version", arguments->version ? arguments->version : "");
    member_set_text(request, "reason", arguments->reason ? arguments->reason : "");
    set_who_and_when(request, "asked_by", "asked");
    if (request_add(desk.requests, request, err) < 0 ||
        tell(arguments, "libs.requested", request, err) < 0)
        return -1;
    if (arguments->json)
        template_print_json(request);
    else
        (void) printf("%s\n", approved_text(request, "id"));
    tell_next_step(arguments, request);
    return 0;
}

static void print_rows(json_object *requests)
{
    for (size_t index = 0; index < json_object_array_length(requests); index++) {
        json_object *request = json_object_array_get_idx(requests, index);
        (void) printf("%-13s %-9s %-10s %-4s %-24s %-12s %s  %s\n", approved_text(request, "id"),
                      approved_text(request, "state"), approved_text(request, "template"),
                      approved_text(request, "manager"), approved_text(request, "name"),
                      approved_text(first_file(request) ? first_file(request) : request, "version"),
                      approved_text(request, "asked_by"), approved_text(request, "reason"));
    }
}

/* Returns the requests that wait for a decision; the caller puts the list. */
static json_object *undecided(json_object *requests)
{
    json_object *waiting = json_object_new_array();
    for (size_t index = 0; index < json_object_array_length(requests); index++) {
        json_object *request = json_object_array_get_idx(requests, index);
        if (is_in_state(request, "asked") || is_in_state(request, "reviewed"))
            (void) json_object_array_add(waiting, json_object_get(request));
    }
    return waiting;
}

static int list_requests(const struct libs_arguments *arguments, int requests, error *err)
{
    auto_json all = NULL;
    if (request_list(requests, &all, err) < 0)
        return -1;
    auto_json shown = arguments->all ? json_object_get(all) : undecided(all);
    size_t hidden = json_object_array_length(all) - json_object_array_length(shown);
    if (arguments->json)
        template_print_json(shown);
    else if (json_object_array_length(shown) == 0)
        (void) puts("nothing waits; ask with: glovebox libs request NAME");
    if (!arguments->json)
        print_rows(shown);
    if (!arguments->json && hidden > 0)
        (void) printf("%zu decided: --all shows them\n", hidden);
    return 0;
}

static int look(const struct libs_arguments *arguments, struct desk *desk, error *err)
{
    auto_json manifest = NULL;
    json_object *facts = NULL;
    if (read_template_manifest(arguments->state, approved_text(desk->request, "template"),
                               &manifest, err) < 0)
        return -1;
    if (review_package(desk->state, desk->requests, desk->request, &facts, err) < 0)
        return under(err, "review %s", approved_text(desk->request, "name"));
    (void) json_object_object_add(desk->request, "review", facts);
    member_set_text(desk->request, "state", "reviewed");
    set_who_and_when(desk->request, "reviewed_by", "reviewed");
    return tell(arguments, "libs.reviewed", desk->request, err) < 0
               ? -1
               : request_write(desk->requests, desk->request, err);
}

int libs_review(const struct libs_arguments *arguments, const char *id, error *err)
{
    auto_desk desk = { .requests = -1 };
    if (desk_open(&desk, arguments, id, err) < 0)
        return -1;
    if (!id)
        return list_requests(arguments, desk.requests, err);
    if (is_in_state(desk.request, "asked") && look(arguments, &desk, err) < 0)
        return -1;
    if (arguments->json)
        template_print_json(desk.request);
    else if (files_of(desk.request))
        libs_card_print(desk.request);
    else
        (void) printf("%s  %s before it was reviewed\n", id, approved_text(desk.request, "state"));
    return 0;
}

/* Checks that the fetched files are still those that were reviewed. */
static int check_fetched(const struct desk *desk, error *err)
{
    json_object *files = files_of(desk->request);
    const char *id = approved_text(desk->request, "id");
    auto_fd archives = request_archives(desk->requests, id, false, err);
    if (archives < 0)
        return -1;
    for (size_t index = 0; index < json_object_array_length(files); index++) {
        json_object *file = json_object_array_get_idx(files, index);
        char digest[DIGEST_SIZE];
        if (digest_file(archives, approved_text(file, "file"), digest, err) < 0)
            return -1;
        if (strcmp(digest, approved_text(file, "sha256")) != 0)
            return fail(err, ERR_CONFLICT,
                        "%s is not what was looked at: its sha256 is %s now; ask again",
                        approved_text(file, "file"), digest);
    }
    return 0;
}

/* For Python greet-more, Greet_More and greet.more are the same name. */
static bool is_same_name(const char *left, const char *right)
{
    for (; *left && *right; left++, right++) {
        bool are_signs = strchr("-_.", *left) && strchr("-_.", *right);
        if (!are_signs && strncasecmp(left, right, 1) != 0)
            return false;
    }
    return *left == *right;
}

static void remove_request(json_object *rows, const char *id)
{
    for (size_t index = json_object_array_length(rows); index > 0; index--)
        if (strcmp(approved_text(json_object_array_get_idx(rows, index - 1), "request"), id) == 0)
            (void) json_object_array_del_idx(rows, index - 1, 1);
}

/* A newer approval of a package replaces the older one, with the packages that came with it. */
static void remove_older(json_object *rows, json_object *request)
{
    for (size_t index = 0; index < json_object_array_length(rows); index++) {
        json_object *row = json_object_array_get_idx(rows, index);
        char id[REQUEST_ID_SIZE];
        if (*approved_text(row, "with") ||
            strcmp(approved_text(row, "manager"), approved_text(request, "manager")) != 0 ||
            !is_same_name(approved_text(row, "name"), approved_text(request, "name")))
            continue;
        (void) snprintf(id, sizeof id, "%s", approved_text(row, "request"));
        remove_request(rows, id);
        index = (size_t) -1; /* start again at the beginning */
    }
}

static int check_conflict(json_object *rows, json_object *file, const char *manager, error *err)
{
    for (size_t index = 0; index < json_object_array_length(rows); index++) {
        json_object *row = json_object_array_get_idx(rows, index);
        bool is_same = *approved_text(file, "place")
                           ? strcmp(approved_text(row, "place"), approved_text(file, "place")) == 0
                           : is_same_name(approved_text(row, "name"), approved_text(file, "name"));
        if (strcmp(approved_text(row, "manager"), manager) == 0 && is_same &&
            strcmp(approved_text(row, "sha256"), approved_text(file, "sha256")) != 0)
            return fail(err, ERR_CONFLICT,
                        "it brings %s %s, and %s has been approved with %s; deny one of the two",
                        approved_text(file, "name"), approved_text(file, "version"),
                        approved_text(row, "request"), approved_text(row, "version"));
    }
    return 0;
}

static int add_rows(json_object *rows, json_object *request, error *err)
{
    static const char *const of_file[] = { "name", "version", "file", "sha256" };
    static const char *const of_request[] = { "manager", "asked_by" };
    json_object *files = files_of(request);
    remove_older(rows, request);
    for (size_t index = 0; index < json_object_array_length(files); index++) {
        json_object *file = json_object_array_get_idx(files, index);
        if (check_conflict(rows, file, approved_text(request, "manager"), err) < 0)
            return -1;
        json_object *row = json_object_new_object();
        for_each(name, of_file)
            member_set_text(row, *name, approved_text(file, *name));
        if (*approved_text(file, "place"))
            member_set_text(row, "place", approved_text(file, "place"));
        for_each(name, of_request)
            member_set_text(row, *name, approved_text(request, *name));
        member_set_text(row, "request", approved_text(request, "id"));
        member_set_text(row, "with", index > 0 ? approved_text(request, "name") : "");
        member_set_text(row, "approved_by", approved_text(request, "decided_by"));
        member_set_text(row, "approved", approved_text(request, "decided"));
        member_set_text(row, "reason",
                        *approved_text(request, "decision") ? approved_text(request, "decision")
                                                            : approved_text(request, "reason"));
        (void) json_object_array_add(rows, row);
    }
    return 0;
}

/* Writes the log first, then the list that builds follow, then the request. */
static int decide(const struct libs_arguments *arguments, struct desk *desk, const char *state,
                  error *err)
{
    auto_json rows = NULL;
    json_object *request = desk->request;
    const char *template_name = approved_text(request, "template");
    bool is_approved = strcmp(state, "approved") == 0;
    if (approved_read(desk->state, template_name, &rows, err) < 0)
        return -1;
    member_set_text(request, "decision", arguments->reason ? arguments->reason : "");
    set_who_and_when(request, "decided_by", "decided");
    remove_request(rows, approved_text(request, "id"));
    int result = is_approved ? add_rows(rows, request, err) : 0;
    if (result == 0)
        result = tell(arguments, is_approved ? "libs.approved" : "libs.denied", request, err);
    if (result == 0)
        result = approved_write(desk->requests, template_name, rows, err);
    member_set_text(request, "state", state);
    return result == 0 ? request_write(desk->requests, request, err) : -1;
}

int libs_approve(const struct libs_arguments *arguments, const char *id, error *err)
{
    auto_desk desk = { .requests = -1 };
    if (check_reason(arguments->reason, err) < 0 || desk_open(&desk, arguments, id, err) < 0)
        return -1;
    if (is_in_state(desk.request, "asked"))
        return fail(err, ERR_CONFLICT, "it was not reviewed yet; first: glovebox libs review %s",
                    id);
    if (!is_in_state(desk.request, "reviewed"))
        return fail(err, ERR_CONFLICT, "%s has been %s already", id,
                    approved_text(desk.request, "state"));
    if (check_fetched(&desk, err) < 0 || decide(arguments, &desk, "approved", err) < 0)
        return -1;
    (void) printf("%s %s approved for template %s; next: glovebox template build %s\n",
                  approved_text(first_file(desk.request), "name"),
                  approved_text(first_file(desk.request), "version"),
                  approved_text(desk.request, "template"), approved_text(desk.request, "template"));
    return 0;
}

int libs_deny(const struct libs_arguments *arguments, const char *id, error *err)
{
    auto_desk desk = { .requests = -1 };
    if (check_reason(arguments->reason, err) < 0 || desk_open(&desk, arguments, id, err) < 0)
        return -1;
    if (is_in_state(desk.request, "denied"))
        return fail(err, ERR_CONFLICT, "%s has been denied already", id);
    bool was_approved = is_in_state(desk.request, "approved");
    if (decide(arguments, &desk, "denied", err) < 0)
        return -1;
    (void) printf("%s denied%s\n", approved_text(desk.request, "name"),
                  was_approved ? "; the next build of its template leaves it out" : "");
    return 0;
}
