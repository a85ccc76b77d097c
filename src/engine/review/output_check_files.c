/* output_check_files.c - collects the inputs of the checker of outputs. */
#include "engine/review/output_check_files.h"

#include "base/cleanup.h"
#include "base/read_at.h"
#include "engine/run/run.h"
#include "json/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTENTS_MAX = 32 * 1024 * 1024 }; /* of all artifacts, if their contents are checked */

void output_check_files_free(struct output_check_files *files)
{
    if (!files)
        return;
    bytes_done(&files->expected);
    bytes_done(&files->output[0]);
    bytes_done(&files->output[1]);
    free(files->names);
    free(files->contents);
    free(files);
}

static void add_file(struct output_check_files *files, const char *name, const char *data,
                     size_t size)
{
    struct request_file *file = &files->list[files->count++];
    *file = (struct request_file){ .path = name, .has_content = true, .read_only = true };
    payload_from_text(&file->content, size > 0 ? data : "", size);
}

static void add_output(const struct run *run, struct output_check_files *files, unsigned index,
                       const char *name)
{
    char marker[OUTPUT_MARKER_MAX];
    struct output_part parts[OUTPUT_PARTS];
    output_parts(&run->collector.output[index], name, marker, parts);
    for (unsigned i = 0; i < OUTPUT_PARTS; i++)
        if (i != 1) /* the marker is our own text */
            bytes_add(&files->output[index], parts[i].data, parts[i].size);
    add_file(files, name, files->output[index].data, files->output[index].size);
}

static void write_expected(const struct run *run, struct bytes *out)
{
    const struct collector *collector = &run->collector;
    const char *expect =
        json_object_to_json_string_ext(run->output_check->expects, JSON_C_TO_STRING_PLAIN);
    json_open(out, '{');
    json_key(out, "expects");
    json_raw(out, expect ? expect : "", expect ? strlen(expect) : 0);
    json_open_field(out, "stdout", '{');
    json_count_field(out, "bytes", collector->output[0].total);
    json_flag_field(out, "cut",
                    output_is_truncated(&collector->output[0]) || collector->output[0].starved);
    json_close(out, '}');
    json_flag_field(out, "artifacts_cut",
                    collector->artifacts_cut || collector->artifact_files_cut ||
                        run->files_are_lost);
    json_open_field(out, "artifacts", '[');
    for (size_t i = 0; i < collector->artifact_count; i++) {
        json_open(out, '{');
        json_string_field(out, "path", collector->artifacts[i].path);
        json_count_field(out, "bytes", collector->artifacts[i].size);
        json_close(out, '}');
    }
    json_close(out, ']');
    json_key(out, "skipped"); /* their names are reported, too */
    json_open(out, '[');
    for (size_t i = 0; i < collector->denials.count; i++)
        if (strcmp(collector->denials.rows[i].layer, "artifact") == 0)
            json_string(out, collector->denials.rows[i].target);
    json_close_all(out, "]}");
}

static int read_blob(const struct run *run, const struct artifact *artifact, char *to, error *err)
{
    struct blob_view view;
    if (blob_open(run->runs->blobs, run->collector.owner.name, artifact->sha256, &view, err) < 0)
        return -1;
    auto_fd fd = view.fd;
    return read_at(fd, to, artifact->size, 0) == (ssize_t) artifact->size
               ? 0
               : fail(err, ERR_SYSTEM, "an artifact could not be read again");
}

static int add_artifacts(const struct run *run, struct output_check_files *files, error *err)
{
    const struct collector *collector = &run->collector;
    uint64_t all = 0, at = 0;
    if (collector->artifact_count > ARTIFACTS_MAX)
        return fail(err, ERR_TOO_LARGE, "there are %zu artifacts; at most %d can be compared",
                    collector->artifact_count, ARTIFACTS_MAX);
    if (!run->output_check->needs.contents)
        return 0;
    for (size_t i = 0; i < collector->artifact_count; i++)
        all += collector->artifacts[i].size;
    if (all > CONTENTS_MAX)
        return fail(err, ERR_TOO_LARGE, "the artifacts have %llu bytes; at most %d can be checked",
                    (unsigned long long) all, CONTENTS_MAX);
    files->names = calloc(collector->artifact_count + 1, sizeof *files->names);
    files->contents = malloc(all + 1);
    if (!files->names || !files->contents)
        return fail(err, ERR_SYSTEM, "memory ran out");
    for (size_t i = 0; i < collector->artifact_count; i++) {
        const struct artifact *artifact = &collector->artifacts[i];
        if (read_blob(run, artifact, files->contents + at, err) < 0)
            return -1;
        (void) snprintf(files->names[i], sizeof files->names[i], "artifact.%zu", i);
        add_file(files, files->names[i], files->contents + at, artifact->size);
        at += artifact->size;
    }
    return 0;
}

int output_check_files_gather(struct run *run, struct output_check_files *files, error *err)
{
    struct bytes *results = &run->collector.results;
    add_output(run, files, 0, "stdout");
    add_output(run, files, 1, "stderr");
    write_expected(run, &files->expected);
    size_t expected = files->expected.size;
    bytes_add_text(&files->expected, "["); /* the results follow in the same allocation */
    bytes_add(&files->expected, results->data, results->size);
    bytes_add_text(&files->expected, "]");
    if (files->expected.failed || files->output[0].failed || files->output[1].failed)
        return fail(err, ERR_SYSTEM, "memory ran out");
    add_file(files, "expected", files->expected.data, expected);
    add_file(files, "results", files->expected.data + expected, files->expected.size - expected);
    add_file(files, "error", run->collector.failure.data, run->collector.failure.size);
    return add_artifacts(run, files, err);
}
