/* output_check_files.h - the files for the checker of outputs: output, artifacts and results of the
 * run, and what is expected of them. For output_check.c. */
#pragma once

#include "engine/review/helper_run.h"
#include "engine/review/output_check.h"

enum {
    ARTIFACTS_MAX = 1000, /* the most that are compared */
    FIXED_FILES = 5
};

struct output_check_files {
    struct request_file list[FIXED_FILES + ARTIFACTS_MAX];
    size_t count;
    struct bytes expected, output[2];
    char (*names)[32];
    char *contents; /* of the artifacts, one after another */
    output_check_told *told;
};

/* Fails  there is more than is compared, no memory, or an artifact was deleted. */
int output_check_files_gather(struct run *run, struct output_check_files *files, error *err);
void output_check_files_free(struct output_check_files *files);
