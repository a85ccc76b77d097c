/* inputs.h - reads inputs of a run: code, stdin, files. */
#pragma once

#include "base/error.h"

#include <glovebox.h>

#include <stddef.h>

/* Reads a descriptor to its end. Gives *ret_data (freed by the caller), ended by NUL. */
int read_to_end(int fd, const char *name, char **ret_data, size_t *ret_size, error *err);

/* Reads a file of the host. Fails with the reason and what to do. */
int read_input_file(const char *path, char **ret_data, size_t *ret_size, error *err);

/* Reads the file of --expect. Gives  *ret_json, freed by the caller. */
int read_expectation(const char *path, char **ret_json, error *err);

/* Reads SOURCE[:TARGET][:ro], a file or a folder, into the array of `room` files, of which *count
 * are in use. The caller frees paths and contents, also after a failure. */
int read_file_argument(const char *text, glb_file *files, size_t room, size_t *count, error *err);

/* The language of a file, by its ending or its first line; NULL: unknown. */
const char *language_of_file(const char *path, const char *content, size_t size);

/* Code to check. */
struct code_input {
    const char *name;     /* of its file; else "code" */
    const char *language; /* NULL: nothing says it */
    char *text;           /* freed by the caller */
    size_t size;
};

/* Reads code from a file; "-": stdin. `language` NULL: as its name or first line says. */
int read_code(const char *path, const char *language, struct code_input *ret_code, error *err);
