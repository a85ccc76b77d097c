/* init.h - glovebox-init: the fork server of a template, and pid 1 of each sandbox cloned from it.
 *
 * One thread, no heap: all state of a sandbox has a fixed place in struct sandbox. */
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "contract/agent.h"
#include "contract/build.h"
#include "init/pace.h"

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct filter {
    unsigned instructions;
    struct sock_filter code[BUILD_FILTER_MAX];
};

enum { PID_PENDING = -1 };

/* A program that gloveboxd has started. */
struct program {
    uint32_t id; /* gloveboxd's; 0 = free */
    pid_t pid;   /* 0 = has ended, PID_PENDING = is being forked elsewhere */
    uint32_t flags;
    int input;       /* we write, -1 if closed */
    int outputs[2];  /* we read stdout and stderr; a terminal has only the first */
    int status;      /* as waitpid(2) gives it */
    int control;     /* to an interpreter, -1 if it is none */
    int listener;    /* refused system calls of a forked interpreter, -1 if none */
    bool is_driver;  /* an interpreter of another language, see AGENT_START_CELLS */
    bool is_busy;    /* a cell runs */
    uint32_t said;   /* bytes of a driver's lines in `pending` */
    bool has_spoken; /* its first message has come; later ones may be of user code */
    bool is_main;
    bool input_ends;           /* close `input` when `pending` has been written */
    uint64_t credit;           /* with AGENT_START_CREDIT: bytes of output that may be passed on */
    unsigned blocks_after_end; /* passed on since it has ended */
    uint32_t waiting;          /* bytes of input in `pending` */
    char *pending; /* AGENT_WINDOW bytes, outside: else each program would touch a page more */
    deadline is_left_alone; /* until then its output is not read */
};

struct sandbox {
    struct build_sandbox spec;
    const struct filter *filter;

    int inside; /* stream to gloveboxd */
    int report; /* to the spawner */
    int holders[GROUPS];
    int procs[GROUPS];    /* procs files of the program's control group */
    int listener;         /* refused system calls of init and what it starts */
    int ends[4];          /* the interpreter's stdin, stdout, stderr, control, until reported */
    unsigned route_count; /* sockets that listen for egress, until HELLO has been sent */
    int route[3 + SPAWN_PORTS_MAX];
    int root; /* O_PATH of "/" and "/workspace": paths of gloveboxd are resolved beneath */
    int workspace;

    int last_pid;  /* /proc/loadavg, whose last number is the newest process id of this namespace */
    int processes; /* "/proc" that hides no process, where no control group counts them */
    struct usage {
        struct agent_bound bound; /* zeros: not watched */
        struct agent_used used, told;
        uint64_t inputs_bytes; /* files that gloveboxd wrote before the program began */
        bool is_due;           /* code has begun */
        bool processes_were_full;
    } usage;

    uint64_t walls;
    uint64_t degraded;
    int landlock_abi;
    uint64_t base_bytes; /* in use before the run: not charged to the program */
    uint64_t base_inodes;

    struct agent_measured measured;
    uint32_t denials;
    struct pace pace;    /* of refused calls and messages of interpreters */
    bool is_kept;        /* it is a session's: see AGENT_KEEP */
    bool code_has_ended; /* the interpreter has sent EXECUTED, and ends */
    struct {
        bool is_ordered; /* AGENT_CONCLUDE has come */
        bool is_due;     /* the code has ended, or is to end */
        bool is_done;
        uint32_t id;
        struct agent_collect limits;
    } conclusion;
    struct program programs[AGENT_PROCESSES_MAX];
};

/* build_orders.c: read orders of the spawner to a fork server, and check every field. Descriptors
 * stay in the packet. Fail ERR_PROTOCOL. */
struct packet;
int read_build_sandbox(const struct packet *packet, struct build_sandbox *ret_order, error *err);
int read_build_zygote(const struct packet *packet, unsigned zygotes, struct build_zygote *ret_order,
                      error *err);

/* fork_server.c: serves BUILD_SANDBOX; returns only in a clone, pid 1, which then builds its
 * sandbox. */
int fork_server_main(struct sandbox *sandbox, error *err);

/* recipe.c: raises every wall; on return 0 the process is as confined as any program will be. */
int build_sandbox(struct sandbox *sandbox, error *err);

/* egress_listeners.c: makes every address local, and listening sockets for glovebox-egress. */
int open_egress_listeners(struct sandbox *sandbox, error *err);

/* scratch.c: the only writable file system, and its places, as paths from the root. */
enum { SCRATCH_PLACES = 5 };
extern const char *const scratch_places[SCRATCH_PLACES];
int mount_scratch(struct sandbox *sandbox, error *err);
void measure_scratch(struct sandbox *sandbox);

/* usage.c: memory and processes where no control group counts them. */
int bound_usage(struct sandbox *sandbox, const struct agent_bound *bound, error *err);
void watch_usage(struct sandbox *sandbox); /* measures, if it is time */
int usage_interval_ms(const struct sandbox *sandbox, int other_ms);
void begin_usage(struct sandbox *sandbox); /* code begins */
bool look_now(struct sandbox *sandbox);    /* before processes end; false: not watched */
void tell_usage(struct sandbox *sandbox);  /* sends USED, if there is news */

/* serve.c: watch_children() gives a signalfd(2) of SIGCHLD, -1 with *err. serve() answers gloveboxd
 * until it goes. */
int watch_children(error *err);
_Noreturn void serve(struct sandbox *sandbox, int children);

/* frames.c: the stream to gloveboxd. Writes wait until everything has been sent. If gloveboxd has
 * ended, init exits, and the sandbox with it. */
struct frame {
    size_t have; /* bytes that have come so far */
    int fd;      /* the descriptor that came with it, -1 if none; closed after the order */
    struct agent_frame head;
    _Alignas(8) unsigned char payload[AGENT_PAYLOAD_MAX + 1];
};
bool frame_is_complete(struct sandbox *sandbox, struct frame *frame);
void send_frame(const struct sandbox *sandbox, enum agent_kind kind, unsigned stream, uint32_t id,
                const void *first, size_t first_size, const void *second, size_t second_size);
void send_done(const struct sandbox *sandbox, uint32_t id, const error *err); /* NULL: success */

/* Small frames that follow one another at once are sent together: gloveboxd wakes up once. */
void hold_frames(void);
void release_frames(const struct sandbox *sandbox);
void say_hello(struct sandbox *sandbox); /* with the egress sockets, which it closes */

/* orders.c: carries out a whole frame of gloveboxd, and answers it. */
void obey_order(struct sandbox *sandbox, const struct frame *frame);

/* Carries out AGENT_CONCLUDE if it is due. */
void conclude_if_due(struct sandbox *sandbox);

/* command.c: the strings of an AGENT_START, pointing into its payload. */
struct command {
    const char *folder;
    char *arguments[AGENT_ARGUMENTS_MAX + 1];
    char *variables[AGENT_ARGUMENTS_MAX + 1];
};
int read_command(const struct agent_start *start, const char *at, const char *end,
                 struct command *command, error *err);

int limit_use_to(const struct sandbox *sandbox, uint32_t open_files, error *err);
int start_program(struct sandbox *sandbox, const struct frame *in, error *err);

/* programs.c: input, output and ends of programs. */
int feed_program(struct sandbox *sandbox, uint32_t id, const void *bytes, size_t size, error *err);
void end_input(struct sandbox *sandbox, uint32_t id);
int signal_program(struct sandbox *sandbox, uint32_t id, const struct agent_signal *order,
                   error *err);
int resize_terminal(struct sandbox *sandbox, uint32_t id, const struct agent_size *size,
                    error *err);
bool output_may_pass(const struct program *program);
bool grant_output(struct sandbox *sandbox, const struct frame *in); /* false: no such program */
void write_input(struct sandbox *sandbox, struct program *program);
void drain_output(struct sandbox *sandbox, struct program *program);
bool pass_output(struct sandbox *sandbox, struct program *program, unsigned stream);
bool reap_programs(struct sandbox *sandbox); /* true: there is no child left */
void finish_programs(struct sandbox *sandbox);
void stop_everything(struct sandbox *sandbox);
struct program *free_place(struct sandbox *sandbox);
struct program *program_of(struct sandbox *sandbox, uint32_t id);
uint32_t programs_alive(const struct sandbox *sandbox);

/* files.c: files of a run; each path is resolved beneath its folder and through no link. */
int put_begin(struct sandbox *sandbox, uint32_t id, const unsigned char *payload, size_t size,
              error *err);
int put_data(uint32_t id, const void *bytes, size_t size, error *err);
enum { PUT_WELL = 0, PUT_ANSWERED = 1 /* it has failed before, and DONE was sent */ };
int put_end(uint32_t id, error *err);
bool is_putting(uint32_t id);
int open_beneath(int folder, const char *path, int flags, mode_t mode, error *err);
/* Gives the folder of the last name, and that name; the folders on the way are made if `make`. */
int open_parent(int folder, const char *path, bool make, int *ret_parent, const char **ret_name,
                error *err);
int send_file(const struct sandbox *sandbox, uint32_t id, int file, const char *path, uint64_t size,
              error *err);

/* paths.c: opens a folder in a folder, for all walks. Follows no link, and does not enter /proc
 * (EACCES). */
int open_inner(int folder, const char *name, int flags);

/* entries.c: names of a session. Paths: agent.h. */
int list_folder(struct sandbox *sandbox, uint32_t id, const struct agent_list *order,
                const char *path, error *err);
int make_folder(struct sandbox *sandbox, const char *path, error *err);
int move_path(struct sandbox *sandbox, const char *from, const char *to, error *err);
int remove_path(struct sandbox *sandbox, const char *path, error *err);

/* A program may set any time: one that does not fit into 64 bits of nanoseconds is clamped. */
static inline int64_t nanoseconds_of(const struct timespec *time)
{
    int64_t sum;
    if (__builtin_mul_overflow((int64_t) time->tv_sec, INT64_C(1000000000), &sum) ||
        __builtin_add_overflow(sum, (int64_t) time->tv_nsec, &sum))
        return time->tv_sec < 0 ? INT64_MIN : INT64_MAX;
    return sum;
}

/* What getdents64(2) fills in. */
struct listed {
    uint64_t inode;
    int64_t offset;
    uint16_t length;
    uint8_t type;
    char name[];
};
/* NOLINTBEGIN(bugprone-macro-parentheses): a name that is declared cannot stand in them */
#define for_each_listed(entry, entries, got)                             \
    for (const struct listed *entry = (const struct listed *) (entries); \
         (const char *) entry < (const char *) (entries) + (got);        \
         entry = (const struct listed *) ((const char *) entry + entry->length))
/* NOLINTEND(bugprone-macro-parentheses) */

/* collect.c: what a run has made. */
int seal_inputs(struct sandbox *sandbox, error *err);
int collect_artifacts(struct sandbox *sandbox, uint32_t id, const struct agent_collect *order,
                      error *err);

/* denials.c: answers refused system calls and reports them. */
void answer_denial(struct sandbox *sandbox, uint32_t id, int *listener);

/* interpreter.c: the interpreter that a zygote forks into this sandbox. */
int expect_interpreter(struct sandbox *sandbox, struct program *interpreter, error *err);
void expect_another(struct sandbox *sandbox); /* reads BUILD_EXPECT of the spawner */
void report_ready(struct sandbox *stands, const error *err);
int execute_code(struct sandbox *sandbox, uint32_t id, const unsigned char *payload, size_t size,
                 error *err);
int image_interpreter(struct sandbox *sandbox, const struct frame *in, error *err);
/* False: no message has come. */
bool interpreter_speaks(struct sandbox *sandbox, struct program *interpreter);
void hear_interpreter_out(struct sandbox *sandbox, struct program *interpreter);
