/* collector.h - what comes out of a sandbox during one run: output, files, refusals, the end.
 *
 * Everything here was said by the sandbox's init, which is not believed: a frame counts only in the
 * phase in which it was asked for, and within the limits that were granted. No clock and no
 * descriptor but the blobs': fuzzed together with frame_reader.h. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "contract/agent.h"
#include "engine/run/denials.h"
#include "engine/run/display_data.h"
#include "engine/run/output_buffer.h"
#include "engine/store/blobs.h"
#include "model/limits.h"

#include <stdbool.h>

/* Operations and programs of a run, by the ids that we give them. */
enum {
    ID_INTERPRETER = AGENT_INTERPRETER,
    ID_COMPILER = 6,
    ID_PROGRAM = 2,
    ID_SEAL = 3,
    ID_STOP = 4,
    ID_COLLECT = 5,
    ID_FIRST_FILE = 16
};

enum collector_phase {
    COLLECTOR_LOADING = 1,   /* inputs are on their way in */
    COLLECTOR_RUNNING = 2,   /* a program runs, or is being stopped */
    COLLECTOR_COLLECTING = 4 /* nothing runs; files come out */
};

struct artifact {
    char *path;
    uint64_t size;
    char sha256[BLOB_NAME_SIZE];
    const char *mime;
    bool was_known;            /* its owner had the same bytes before */
    struct blob_writer writer; /* till it is kept */
};

struct collector {
    enum collector_phase phase;
    const struct limits *limits; /* granted; borrowed */
    const char *policy;          /* its name; borrowed */
    struct output output[2];     /* stdout, stderr */

    uint32_t loads_open; /* PUT and SEAL that are not DONE */
    error load_failure;  /* the first of them that failed */
    uint32_t running;    /* id of the program that was started, 0 = none */
    bool has_started;
    struct agent_exited exited;
    bool has_exited;
    error start_failure; /* of a START */
    struct agent_measured measured;
    bool has_measured;
    bool has_stopped; /* init said that nothing runs any more */

    struct blob_store *blobs; /* borrowed */
    struct blob_owner owner;  /* of the artifacts, borrowed */
    struct blob_writer writer;
    bool file_is_open;
    struct agent_file file;
    char *file_path;
    uint64_t file_bytes; /* of all files, announced */
    size_t artifact_count, artifact_room;
    struct artifact *artifacts;
    size_t written, kept; /* the first of them, on the disk; and in the store: they may be named */
    uint64_t unwritten;   /* bytes of the others, in memory, and a block for each */
    error write_failure;
    bool artifacts_cut;      /* some did not fit into the limit of bytes */
    bool artifact_files_cut; /* or of their number */
    struct denials denials;

    struct bytes
        results; /* JSON objects of results; comma and tab, which JSON escapes, stand between */
    struct display_data_span text;    /* of the main result in `results`, with its quotes */
    struct display_data display_data; /* the result that is coming in */
    enum agent_result_what display_data_as;
    size_t display_data_bytes; /* of it so far; 0: none is coming in */
    bool piece_is_cut;         /* it was too large to show: what still comes of it is left out */
    uint64_t results_looked;   /* bytes that were looked at, whether anything came of them or not */
    uint64_t results_told;     /* bytes on the control socket, whether they were looked at or not */
    struct bytes failure;      /* JSON object: the exception that ended the code */
};

enum collector_event {
    COLLECTOR_NOTHING,
    COLLECTOR_LOADED, /* every input is in its place, or load_failure says why not */
    COLLECTOR_STARTED,
    COLLECTOR_NOT_STARTED, /* start_failure says why */
    COLLECTOR_PRINTED,     /* output or results have grown */
    COLLECTOR_ENDED,       /* the program that was asked for has ended: exited */
    COLLECTOR_STOPPED,     /* nothing runs any more */
    COLLECTOR_COLLECTED,   /* the last artifact is in */
};

void collector_init(struct collector *collector, const struct limits *limits, const char *policy,
                    struct blob_store *blobs);
void collector_done(struct collector *collector);

/* The same, and nothing of it is kept: artifacts neither, unless their owner had them before. */
void collector_discard(struct collector *collector);

/* Code that says this much on its interpreter's socket is ended, as one that prints without end. */
bool collector_is_flood(const struct collector *collector);

/* Writes what is unwritten, off the event loop and undisturbed: at the end, or if it is so much. */
enum { UNWRITTEN_MAX = 1024 * 1024 };
void collector_write(struct collector *collector);
/* It was written, and is kept. Fails  as the disk did: what could not be is no artifact. */
int collector_keep(struct collector *collector, error *err);

/* Takes one frame in. Returns enum collector_event, or -1 with ERR_PROTOCOL (init misbehaves) or
 * ERR_SYSTEM (the blob store failed). */
int collector_frame(struct collector *collector, const struct agent_frame *frame,
                    const unsigned char *payload, error *err);
