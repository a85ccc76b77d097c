/* denials.c - texts for refused calls, from the table that the filter is made from. */
#include "engine/run/denials.h"

#include "base/table.h"

#include <seccomp/refusals.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

void denials_done(struct denials *denials)
{
    free(denials->rows);
    *denials = (struct denials){ 0 };
}

void denials_add(struct denials *denials, enum denial_reason reason, const char *target,
                 const char *message, uint64_t count)
{
    for (size_t i = 0; i < denials->count; i++) {
        struct denial *known = &denials->rows[i];
        if (known->reason == reason && strcmp(known->target, target) == 0 &&
            strncmp(known->message, message, sizeof known->message - 1) == 0) {
            known->count += count;
            return;
        }
    }
    if (!denials->rows)
        denials->rows = calloc(DENIALS_MAX, sizeof *denials->rows);
    if (!denials->rows || denials->count == DENIALS_MAX) {
        denials->unlisted += count;
        return;
    }
    struct denial *denial = &denials->rows[denials->count++];
    denial->reason = reason;
    denial->layer = denial_layer(reason);
    denial->count = count;
    (void) snprintf(denial->target, sizeof denial->target, "%s", target);
    (void) snprintf(denial->message, sizeof denial->message, "%s", message);
}

static const char *family_name(uint64_t family)
{
    static const char *const names[] = {
        [AF_INET] = "AF_INET",     [AF_INET6] = "AF_INET6",         [AF_NETLINK] = "AF_NETLINK",
        [AF_PACKET] = "AF_PACKET", [AF_VSOCK] = "AF_VSOCK",         [AF_ALG] = "AF_ALG",
        [AF_XDP] = "AF_XDP",       [AF_BLUETOOTH] = "AF_BLUETOOTH",
    };
    return family < COUNT_OF(names) ? names[family] : NULL;
}

static const char *type_name(uint64_t type)
{
    static const char *const names[0x10] = {
        [SOCK_STREAM] = "SOCK_STREAM", [SOCK_DGRAM] = "SOCK_DGRAM", [SOCK_RAW] = "SOCK_RAW"
    };
    return names[type & 0xF] ? names[type & 0xF] : "other";
}

static void add_socket(struct denials *denials, const struct agent_denial *call, const char *why,
                       const char *policy)
{
    char target[DENIAL_TARGET_SIZE];
    char message[DENIAL_MESSAGE_SIZE];
    uint32_t family = (uint32_t) call->arguments[0];
    const char *name = family_name(family);
    if (name)
        (void) snprintf(target, sizeof target, "socket(%s, %s)", name,
                        type_name(call->arguments[1]));
    else
        (void) snprintf(target, sizeof target, "socket(family %u)", family);
    if (family == AF_INET || family == AF_INET6) {
        (void) snprintf(message, sizeof message,
                        "policy %s has no network; work with the files and libraries that are here",
                        policy);
        denials_add(denials, DENIAL_NO_NETWORK, target, message, 1);
        return;
    }
    denials_add(denials, DENIAL_SOCKET_FAMILY, target, why, 1);
}

void denials_add_call(struct denials *denials, const struct agent_denial *call, const char *policy)
{
    const struct refusal *refusal = find_refusal(call->call, call->arguments);
    const char *why = refusal ? refusal->why : "this call is refused in every sandbox";
    if (call->call == SYS_socket) {
        add_socket(denials, call, why, policy);
        return;
    }
    char target[DENIAL_TARGET_SIZE];
    if (refusal)
        (void) snprintf(target, sizeof target, "%s", refusal->name);
    else
        (void) snprintf(target, sizeof target, "call %u", call->call);
    denials_add(denials, DENIAL_CALL, target, why, 1);
}

void denials_add_skipped(struct denials *denials, const struct agent_skipped *skipped,
                         const char *path, size_t path_size)
{
    static const struct {
        enum denial_reason reason;
        const char *message;
    } rows[] = {
        /* clang-format off */
        [0] = { DENIAL_READ, "it is not returned" }, /* for an unknown reason */
        [AGENT_SKIP_LINK] = { DENIAL_LINK, "a symbolic link is not returned; write the file itself" },
        [AGENT_SKIP_SPECIAL] = { DENIAL_SPECIAL, "a FIFO, socket or device is not returned" },
        [AGENT_SKIP_NAME] = { DENIAL_NAME, "the name is not UTF-8 or has control characters; rename the file" },
        [AGENT_SKIP_BYTES] = { DENIAL_BYTES, "it does not fit into limits.artifacts_bytes; ask for more or write less" },
        [AGENT_SKIP_COUNT] = { DENIAL_COUNT, "more files than limits.artifact_files; pack them into one archive" },
        [AGENT_SKIP_DEPTH] = { DENIAL_DEPTH, "it is more than 64 folders deep" },
        [AGENT_SKIP_READ] = { DENIAL_READ, "it could not be read" },
        /* clang-format on */
    };
    unsigned row = skipped->reason < COUNT_OF(rows) ? skipped->reason : 0;

    char target[DENIAL_TARGET_SIZE] = "/workspace/";
    size_t used = strlen(target);
    for (size_t i = 0; i < path_size && used + 5 < sizeof target; i++) {
        unsigned byte = (unsigned char) path[i];
        unsigned next = i + 1 < path_size ? (unsigned char) path[i + 1] : 0;
        bool is_c1 = byte == 0xC2 && next >= 0x80 && next < 0xA0; /* U+0080 to U+009F */
        i += is_c1;
        if (byte >= 0x20 && byte != 0x7F && !is_c1)
            target[used++] = path[i];
        else
            used += (size_t) snprintf(target + used, sizeof target - used, "\\x%02x",
                                      is_c1 ? next : byte);
    }
    target[used] = '\0';
    uint64_t count = skipped->reason == AGENT_SKIP_COUNT && skipped->size > 0 ? skipped->size : 1;
    denials_add(denials, rows[row].reason, target, rows[row].message, count);
}
