/* agent.h - the protocol of gloveboxd and glovebox-init, over one stream.
 *
 * A frame is a header and `size` bytes of payload; numbers are little-endian. No frame holds a path
 * of the host. IMAGE, SAVE, LOAD and AGENT_START_RESTORE come with one descriptor, the end of a
 * pipe, so that a branch copies from sandbox to sandbox directly (as frames, 160 MiB cost ten times
 * as much). It is sent with the first byte of its frame; a descriptor that no frame expects is
 * closed. As soon as code of the user runs, gloveboxd treats every frame as hostile: sizes are
 * bounded here, kinds and ids are checked against what was asked. Paths of PUT are relative to the
 * sandbox's root or /workspace, without leading slash; init resolves them beneath that folder and
 * follows no link.
 *
 * Paths of a session's operations (READ and what follows it, LIST, MAKE, MOVE, REMOVE) begin with
 * "/", or are relative to /workspace; no part of them is empty, "." or "..". Links in a path are
 * resolved with the sandbox's root as root, so none leads out. WRITE, MOVE and REMOVE act on the
 * name itself, not on what a link of that name leads to. Nothing below /proc is served.
 *
 * An operation ends with DONE. Streams are bounded by credit: READ, PACK, WATCH, CONNECT and
 * programs with AGENT_START_CREDIT send as many bytes as the order and later CREDITs have granted.
 * To a connection and to a program's stdin AGENT_WINDOW bytes may be on their way; init grants more
 * by CREDIT. Frames for an operation that has ended are ignored, so that both sides may end one at
 * the same time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    AGENT_VERSION = 1,
    AGENT_PAYLOAD_MAX = 65536,
    AGENT_PATH_MAX = 4095,
    AGENT_ARGUMENTS_MAX = 256, /* strings of an argument list; the same for the environment */
    AGENT_PROCESSES_MAX = 64,  /* programs that gloveboxd has started in one sandbox */
    AGENT_INTERPRETER = 1,     /* process id of the forked interpreter; gloveboxd starts from 2 */
    AGENT_DENIALS_MAX = 256,   /* after these the calls still fail, but are not reported */
    AGENT_OPERATIONS_MAX = 32, /* READ, WRITE, PACK, UNPACK, WATCH, CONNECT under way at once */
    AGENT_WINDOW = 65536,      /* bytes on their way to a stdin or a connection */
};

struct agent_frame {
    uint32_t size;     /* of the payload */
    uint16_t kind;     /* enum agent_kind */
    uint16_t stream;   /* AGENT_OUTPUT: 1 stdout, 2 stderr; else 0 */
    uint32_t id;       /* operation or process that it belongs to */
    uint32_t reserved; /* 0 */
};

enum agent_kind {
    /* gloveboxd -> init */
    AGENT_PUT =
        1, /* struct agent_put + path: a file begins; DATA and END with the same id follow; DONE */
    AGENT_DATA,    /* bytes of the file `id`, or of the stdin of process `id` */
    AGENT_END,     /* end of that file, or of that stdin */
    AGENT_SEAL,    /* inputs are complete: what changes from now on is an artifact; DONE */
    AGENT_START,   /* struct agent_start + strings; STARTED, or DONE with an error */
    AGENT_SIGNAL,  /* struct agent_signal; DONE */
    AGENT_STOP,    /* kill every process but init and wait until they are gone; STOPPED */
    AGENT_COLLECT, /* struct agent_collect; FILE, DATA…, END for each artifact, SKIPPED for
                       others; DONE */
    AGENT_MEASURE, /* MEASURED */
    AGENT_GET,     /* obsolete: a READ without credit; not served */
    AGENT_LIST,    /* struct agent_list + path: ENTRY…; DONE; E2BIG if there were more */
    AGENT_MAKE,    /* path of a folder, parents included; DONE */
    AGENT_MOVE,    /* two paths, NUL between them; DONE */
    AGENT_REMOVE,  /* path, folders with what is in them; DONE */
    AGENT_RESIZE,  /* struct agent_size of the terminal of process `id`; DONE */
    AGENT_CREDIT,  /* struct agent_amount: process or operation `id` may send so many more bytes; no
                       answer */
    AGENT_EXECUTE, /* struct agent_execute + strings + code, for the forked interpreter `id`;
                       EXECUTED */
    AGENT_KEEP,    /* no payload, no answer: the sandbox is a session's. It has no main program from
                       now on: other programs go on when an interpreter ends */
    /* struct agent_collect: when the code of the forked interpreter has ended, or at a STOP, init
     * does what STOP and COLLECT ask for, once, without waiting in between: STOPPED, FILE…, DONE
     * with this id. */
    AGENT_CONCLUDE,
    AGENT_BOUND, /* struct agent_bound: limits that no control group enforces; before any code. USED
                    follows when there is news */

    /* Operations of a session: DONE ends each. */
    AGENT_READ = 40, /* struct agent_read + path: FILE, DATA…, END */
    AGENT_WRITE, /* struct agent_write + path: OPENED; DATA… and END are awaited; ENTRY. The file
                     appears whole, in place of what had its name, or not at all */
    AGENT_STAT,  /* path: ENTRY */
    AGENT_PACK, /* struct agent_flow + path of a folder: OPENED, DATA… (a tar), SKIPPED…, END */
    AGENT_UNPACK,  /* path of a folder, made if there is none: OPENED; DATA… (a tar) and END are
                       awaited; SKIPPED… */
    AGENT_WATCH,   /* struct agent_watch + path of a folder: OPENED, CHANGE… until CANCEL */
    AGENT_CONNECT, /* struct agent_connect, a TCP port of the sandbox's loopback: OPENED, then
                       DATA and END both ways */
    AGENT_CANCEL,  /* ends the operation `id`: DONE with ECANCELED, unless it has ended already */

    /* Each comes with one end of a pipe. */
    AGENT_IMAGE = 49, /* for the forked interpreter `id`, which runs no cell now: it forks, and the
                          child writes its image (image.h). EXECUTED when it has forked, with the
                          errno as exit code; DONE if it could not be asked. The child writes the
                          bytes later, and closes the pipe */
    AGENT_SAVE,       /* the writable places, with their contents, as a tar with paths from the
                          root, holes left out (tar_reader.h): SKIPPED…; DONE when it is written */
    AGENT_LOAD,       /* such a tar, which replaces what is in those places; DONE */

    /* init -> gloveboxd */
    AGENT_HELLO = 64,        /* struct agent_hello: first frame, before anything else */
    AGENT_DONE,              /* struct agent_done + text: the operation `id` succeeded or failed */
    AGENT_STARTED,           /* struct agent_started */
    AGENT_OUTPUT,            /* bytes of stdout (stream 1) or stderr (2) of process `id` */
    AGENT_EXITED,            /* struct agent_exited: after the last OUTPUT of that process */
    AGENT_STOPPED,           /* struct agent_measured: nothing runs any more */
    AGENT_FILE,              /* struct agent_file + path: a file begins; DATA and END follow */
    AGENT_SKIPPED,           /* struct agent_skipped + path: why it is not an artifact */
    AGENT_ENTRY,             /* struct agent_entry + path + target of a link */
    AGENT_MEASURED,          /* struct agent_measured */
    AGENT_DENIAL,            /* struct agent_denial: a call was refused */
    AGENT_INTERPRETER_READY, /* struct agent_interpreter_ready: interpreter -> init, before
                         anything else; the listener of its filter comes with it. Not passed on */
    AGENT_RESULT,            /* struct agent_result + JSON: what a cell showed, or why it failed */
    AGENT_EXECUTED,          /* struct agent_executed: after the last RESULT of that execution; in a
                                 session a MEASURED of the same id goes before it. From the interpreter a
                                 VALUE and EXECUTED may come in one message */
    AGENT_USED, /* struct agent_used, of the whole sandbox; it comes before an end that it explains
                 */
    AGENT_OPENED = 96, /* the operation has begun: bytes may be sent */
    AGENT_CHANGE,      /* struct agent_change + path below the watched folder */
};

enum {
    AGENT_PUT_READ_ONLY = 1,
    AGENT_PUT_SYSTEM = 2 /* path is beneath "/", not "/workspace" */
};

struct agent_put {
    uint64_t size;    /* bytes that will follow; checked against the disk limit by the kernel */
    int64_t mtime_ns; /* time since 1970 that the file shall show */
    uint32_t mode;    /* permission bits */
    uint32_t flags;   /* AGENT_PUT_* */
};

enum {
    AGENT_START_MAIN = 1,       /* when it ends, everything else is killed (as AGENT_STOP) first */
    AGENT_START_STDIN_FILE = 2, /* stdin is the file /run/stdin, else nothing (/dev/null) */
    AGENT_START_STDIN_PIPE = 4, /* stdin comes by DATA frames */
    AGENT_START_TERMINAL = 8,   /* a pseudo terminal instead of pipes */
    /* Output is sent by credit, which begins with AGENT_START_GRANT bytes; without the flag, as it
     * is printed. EXITED follows when all output of the program has been sent. */
    AGENT_START_CREDIT = 16,
    AGENT_START_GRANT = 262144,
    /* It runs cells as a forked interpreter does, by lines over its descriptor 3: for each EXECUTE
     * it reads the path of the code's file; it answers with lines of at most AGENT_LINE_MAX bytes:
     *     V JSON, D JSON, E JSON   a RESULT; v, d, e: a piece of it that is not the last
     *     X NUMBER                 EXECUTED, with this exit code */
    AGENT_START_CELLS = 32,
    AGENT_LINE_MAX = 32768,
    /* It becomes an interpreter: glovebox-restore, with the image on its descriptor 4 and the
     * control socket of a forked interpreter on 3. The interpreter first sends a RESULT,
     * {"threads", "descriptors"}: how many of them the image could not hold; and EXECUTED: it is
     * restored, and waits for a cell. */
    AGENT_START_RESTORE = 64,
};

/* Followed by the strings, each ended by NUL: working folder (absolute, inside), then `arguments`,
 * then `variables` (NAME=value). */
struct agent_start {
    uint32_t flags;
    uint16_t arguments;
    uint16_t variables;
    uint16_t rows, columns; /* of the terminal */
    uint32_t reserved;
};

struct agent_signal {
    uint32_t number;
    uint32_t whole_group; /* 1: the process group of process `id`; with id 0: everything inside */
};

struct agent_collect {
    uint64_t bytes_max; /* of all artifacts together */
    uint32_t files_max;
    uint32_t reserved;
};

struct agent_list {
    uint32_t depth;
    uint32_t max; /* entries */
};

struct agent_read {
    uint64_t offset;
    uint64_t length; /* UINT64_MAX: to its end */
    uint64_t credit;
};

enum { AGENT_WRITE_NEW = 1 /* EEXIST if the name is taken */ };

struct agent_write {
    uint32_t mode; /* permission bits; 0: those of the file that is replaced, or 0644 */
    uint32_t flags;
};

struct agent_flow {
    uint64_t credit;
};

enum { AGENT_WATCH_DEEP = 1 /* folders below it too, and those made later */ };

struct agent_watch {
    uint64_t credit; /* bytes of CHANGE frames: when they are used up, changes are lost, and a
                        CHANGE of AGENT_CHANGE_LOST says so */
    uint32_t flags;
    uint32_t reserved;
};

struct agent_connect {
    uint64_t credit;
    uint16_t port;
    uint16_t reserved[3];
};

/* What has happened to a path; the kinds are those of E2B's watch events. */
enum agent_change_what {
    AGENT_CHANGE_CREATE = 1, /* made, or moved to here */
    AGENT_CHANGE_WRITE,
    AGENT_CHANGE_REMOVE,
    AGENT_CHANGE_RENAME, /* moved away from this name */
    AGENT_CHANGE_MODE,
    AGENT_CHANGE_LOST, /* the path is empty: changes were missed, list the folder again */
};

struct agent_change {
    uint64_t size;
    int64_t mtime_ns;
    uint32_t mode; /* 0: it is gone already */
    uint32_t what; /* enum agent_change_what */
};

struct agent_size {
    uint16_t rows, columns;
};

struct agent_amount {
    uint64_t bytes;
};

struct agent_hello {
    uint32_t version;
    uint32_t landlock_abi;
};

struct agent_done {
    int32_t os;                 /* errno, 0 = success; the text behind it says what failed */
    uint32_t is_of_the_program; /* 1: execve() refused the program; every other step succeeded */
};

struct agent_started {
    uint32_t pid; /* as seen inside */
    uint32_t reserved;
};

struct agent_exited {
    int32_t exit_code; /* -1 if a signal ended it */
    int32_t signal;    /* 0 if it ended by itself */
};

struct agent_file {
    uint64_t size;
    int64_t mtime_ns;
    uint32_t mode; /* type and permission bits, as stat(2) */
    uint32_t depth;
};

struct agent_entry {
    uint64_t size;
    int64_t mtime_ns;
    uint32_t mode;        /* type and permission bits, of the link itself */
    uint32_t target_mode; /* of what the link leads to; 0: it is no link, or leads nowhere */
    uint32_t depth;       /* 1: an entry of the folder that was listed; 0: STAT, WRITE */
    uint32_t path_size;   /* the rest is the target */
};

enum agent_skip {
    AGENT_SKIP_LINK = 1, /* symbolic link */
    AGENT_SKIP_SPECIAL,  /* FIFO, socket or device */
    AGENT_SKIP_NAME,     /* not UTF-8, or with control characters */
    AGENT_SKIP_BYTES,    /* does not fit into bytes_max */
    AGENT_SKIP_COUNT,    /* over files_max; the path is empty and `size` counts them */
    AGENT_SKIP_DEPTH,    /* deeper than 64 folders */
    AGENT_SKIP_READ,     /* could not be read; `os` says why */
};

struct agent_skipped {
    uint32_t reason;
    int32_t os;
    uint64_t size;
};

/* Disk figures of the sandbox's own file system. */
struct agent_measured {
    uint64_t disk_bytes;      /* in use now */
    uint64_t disk_peak_bytes; /* highest seen (measured every 20 ms and at every end) */
    uint64_t inodes;
    uint64_t inodes_peak;
    uint32_t disk_was_full; /* 1: a measurement found no byte free */
    uint32_t inodes_were_full;
    uint32_t processes; /* programs alive, init not counted */
    uint32_t reserved;
};

/* Limits that init enforces itself; 0: a control group does. */
struct agent_bound {
    uint64_t memory_bytes;
    uint64_t processes;
};

/* Since the sandbox began, as init has measured it from time to time. */
struct agent_used {
    uint64_t memory_peak_bytes;
    uint64_t memory_kills; /* processes that init has killed for the memory limit */
    uint64_t processes_peak;
    uint64_t processes_full; /* measurements that found as many processes as are allowed */
};

struct agent_denial {
    uint32_t call; /* system call number (x86-64 table of the host's architecture) */
    int32_t os;    /* the errno that it got */
    uint64_t arguments[6];
    uint32_t pid;
    uint32_t reserved;
};

/* How code is run by a forked interpreter. A script ends the interpreter; a cell leaves its names
 * for the next one. PRIME runs code of glovebox's own, without output or effect, so that the next
 * code does not wait for page faults: for the parked sandboxes that will be taken first. */
enum agent_mode { AGENT_MODE_SCRIPT = 1, AGENT_MODE_CELL, AGENT_MODE_PRIME };

enum {
    AGENT_EXECUTE_WRITE = 1, /* the code is also written to the file's path, if it has one */
    AGENT_EXECUTE_LAST = 2,  /* of a cell: the interpreter ends after it, as after a script */
};

/* Followed by the strings, each ended by NUL: working folder, path of the file (both absolute,
 * inside; for a cell, an empty folder leaves it where it is, and without a path it is named
 * <cell N>), then `arguments` (sys.argv: the first is the path of the code), then `variables`
 * (NAME=value: the whole environment, not additions; a cell with none keeps its environment); then
 * `code_size` bytes of code. Code that does not fit into one frame is PUT into the file that the
 * first argument names, and code_size is 0. */
struct agent_execute {
    uint32_t mode;  /* enum agent_mode */
    uint32_t flags; /* AGENT_EXECUTE_* */
    uint16_t arguments;
    uint16_t variables;
    uint32_t code_size;
};

struct agent_interpreter_ready {
    uint32_t pid; /* as seen inside */
    int32_t os;   /* errno of what failed, 0 = every wall stands; the text behind it says what */
};

/* A RESULT frame holds a piece of one JSON object; the piece with `last` completes it.
 *   VALUE and DISPLAY  {"data": {"text/plain": "…", "image/png": "base64…", …}, "metadata": {…},
 *                      "chart": {…}, "id": "…", "update": true}; all but "data" may be missing
 *   ERROR              {"name", "value", "traceback",
 *                      "frames": [{"file", "line", "function", "code"}], "causes": [ERROR…],
 *                      "exceptions": [ERROR…]}; the last two may be missing */
enum agent_result_what { AGENT_RESULT_VALUE = 1, AGENT_RESULT_DISPLAY, AGENT_RESULT_ERROR };

struct agent_result {
    uint16_t what; /* enum agent_result_what */
    uint16_t last;
    uint32_t reserved;
};

/* The code has ended, its output is flushed and its files are closed. A script's interpreter exits
 * right after it, with the same code. */
struct agent_executed {
    int32_t exit_code; /* of a script: -1 if a signal ends it; of a cell: 0, or 1 if it raised */
    int32_t signal;    /* 0, or the signal that the interpreter ends itself with (SIGINT) */
    uint32_t ends;     /* 1: the interpreter ends now */
    uint32_t count;    /* number of this execution in the interpreter, from 1 */
};

/* Is this how a script can end? Code of the user can send any frame in the interpreter's name, so
 * both init and gloveboxd check. */
static inline bool agent_is_end(const struct agent_executed *executed)
{
    bool is_signal = executed->signal > 0 && executed->signal <= 64;
    return is_signal || (executed->exit_code >= 0 && executed->exit_code <= 255);
}
