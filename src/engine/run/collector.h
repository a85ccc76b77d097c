/* collector.h - what one run's sandbox sends: output, files, refusals, the end.
 *
 * The sandbox's init sends it and is not trusted: a frame is accepted only in the phase in which it
 * was requested, and within the limits that were granted. No clock, and no descriptor except for
 * blobs: fuzzed together with frame_reader.h. */
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

/* Ids that we give to operations and programs of a run. */
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
    COLLECTOR_LOADING = 1,   /* inputs are being sent */
    COLLECTOR_RUNNING = 2,   /* a program runs, or is being ended */
    COLLECTOR_COLLECTING = 4 /* nothing runs; files are read */
};

struct artifact {
    char *path;
    uint64_t size;
    char sha256[BLOB_NAME_SIZE];
    const char *mime;
    bool was_known;            /* its owner already had a blob with these bytes */
    struct blob_writer writer; /* until it is stored */
};

struct collector {
    enum collector_phase phase;
    const struct limits *limits; /* granted; borrowed */
    const char *policy;          /* its name; borrowed */
    struct output output[2];     /* stdout, stderr */

    uint32_t loads_open; /* PUT and SEAL without their DONE */
    error load_failure;  /* the first of them that failed */
    uint32_t running;    /* id of the program that was started, 0: none */
    bool has_started;
    struct agent_exited exited;
    bool has_exited;
    error start_failure; /* of a START */
    struct agent_measured measured;
    bool has_measured;
    bool has_stopped; /* init reported that nothing runs any more */

    struct blob_store *blobs; /* borrowed */
    struct blob_owner owner;  /* of the artifacts, borrowed */
    struct blob_writer writer;
    bool file_is_open;
    struct agent_file file;
    char *file_path;
    uint64_t file_bytes; /* of all files, announced */
    size_t artifact_count, artifact_room;
    struct artifact *artifacts;
    size_t written, kept; /* how many artifacts, from the first, are on the disk; and stored */
    uint64_t unwritten;   /* bytes of the others in memory, and a block for each */
    error write_failure;
    bool artifacts_cut;      /* some exceeded the limit of bytes */
    bool artifact_files_cut; /* or the limit of files */
    struct denials denials;

    struct bytes results; /* JSON objects, separated by comma and tab; JSON escapes a tab */
    struct display_data_span text;    /* of the main result in `results`, with its quotes */
    struct display_data display_data; /* the result that is arriving */
    enum agent_result_what display_data_as;
    size_t display_data_bytes; /* its size so far; 0: none is arriving */
    uint64_t result_values;    /* JSON values in `results`: a door may make a tree of them */
    bool piece_is_cut;         /* too large to show: the rest of it is ignored */
    uint64_t results_looked;   /* bytes that were parsed, with or without a result */
    uint64_t results_told;     /* bytes on the control socket, parsed or not */
    struct bytes failure;      /* JSON object: the exception that ended the code */
};

enum collector_event {
    COLLECTOR_NOTHING,
    COLLECTOR_LOADED, /* every input was written, or load_failure says why not */
    COLLECTOR_STARTED,
    COLLECTOR_NOT_STARTED, /* start_failure says why */
    COLLECTOR_PRINTED,     /* output or results have grown */
    COLLECTOR_ENDED,       /* the program has ended: see `exited` */
    COLLECTOR_STOPPED,     /* nothing runs any more */
    COLLECTOR_COLLECTED,   /* the last artifact has come */
};

void collector_init(struct collector *collector, const struct limits *limits, const char *policy,
                    struct blob_store *blobs);
void collector_done(struct collector *collector);

/* The same, but no artifacts are kept, except those that their owner already had. */
void collector_discard(struct collector *collector);

/* True if the code sent so much on its interpreter's socket that it is ended, like one that prints
 * without end. */
bool collector_is_flood(const struct collector *collector);

/* Writes artifacts that are in memory, on a disk thread: at the end, or if there are so many
 * bytes. */
enum { UNWRITTEN_MAX = 1024 * 1024 };
void collector_write(struct collector *collector);
/* The disk has written them. Fails  as the disk did: those that could not be written are no
 * artifacts. */
int collector_keep(struct collector *collector, error *err);

/* Takes a frame. Returns enum collector_event, or -1 with ERR_PROTOCOL (init broke the protocol) or
 * ERR_SYSTEM (the blob store failed). */
int collector_frame(struct collector *collector, const struct agent_frame *frame,
                    const unsigned char *payload, error *err);
