/* ids.h - host user and group ids that glovebox uses. They are far above those of users and
 * services; `glovebox doctor` warns if /etc/subuid grants the same range to a user. */
#pragma once

enum {
    HOST_ID_BASE = 0x70000000,               /* first id of the block; uid 0 of the fork server */
    HOST_ID_COUNT = 65536,                   /* ids that are mapped for fork servers */
    HOST_ID_SANDBOXES = HOST_ID_BASE + 1024, /* sandbox in slot n is this + n */
    HOST_ID_DAEMON = HOST_ID_BASE + HOST_ID_COUNT,
    HOST_ID_EGRESS = HOST_ID_BASE + HOST_ID_COUNT + 1,
    HOST_ID_NOTIFY = HOST_ID_BASE + HOST_ID_COUNT + 2,
    HOST_ID_BUILDS = HOST_ID_BASE + 2 * HOST_ID_COUNT, /* uid 0 of what runs in template builds */
    HOST_ID_LAST = HOST_ID_BUILDS + HOST_ID_COUNT - 1,

    AGENT_ID = 1000, /* the only id that exists inside a sandbox */
    SLOTS_MAX = 60000,
};
