/* command_lines.h - the command lines of the programs. */
#pragma once

#include "supervisor/cgroup_setup.h"
#include "supervisor/child_process.h"
#include "supervisor/installed_templates.h"
#include "supervisor/launch.h"

/* What the programs are told about this machine. */
struct surroundings {
    const struct templates *templates;
    struct group_places places;
    bool privileged;
};

/* Each prepares a program; `socket` is its end of the socket pair to the other. */
int plan_spawner(struct program *program, const struct launch_plan *plan,
                 const struct surroundings *here, int socket, error *err);
int plan_daemon(struct program *program, const struct launch_plan *plan,
                const struct templates *templates, int socket, error *err);
int plan_egress(struct program *program, const struct launch_plan *plan, int socket, error *err);
int plan_notify(struct program *program, const struct launch_plan *plan, int socket, error *err);
