/* media_type.c - the MIME type of a file, by its name, else by its first bytes. */
#include "base/table.h"
#include "engine/store/blobs.h"

#include <string.h>
#include <strings.h>

static const struct ending {
    const char *ending, *mime;
} endings[] = {
    /* clang-format off */
    { "png",     "image/png" },              { "jpg",  "image/jpeg" },
    { "jpeg",    "image/jpeg" },             { "gif",  "image/gif" },
    { "webp",    "image/webp" },             { "svg",  "image/svg+xml" },
    { "pdf",     "application/pdf" },        { "csv",  "text/csv" },
    { "tsv",     "text/tab-separated-values" }, { "txt", "text/plain" },
    { "log",     "text/plain" },             { "md",   "text/markdown" },
    { "html",    "text/html" },              { "htm",  "text/html" },
    { "css",     "text/css" },               { "js",   "text/javascript" },
    { "json",    "application/json" },       { "jsonl", "application/jsonl" },
    { "xml",     "application/xml" },        { "yaml", "application/yaml" },
    { "yml",     "application/yaml" },       { "py",   "text/x-python" },
    { "c",       "text/x-c" },               { "sh",   "application/x-sh" },
    { "ipynb",   "application/x-ipynb+json" }, { "parquet", "application/vnd.apache.parquet" },
    { "xlsx",    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" },
    { "docx",    "application/vnd.openxmlformats-officedocument.wordprocessingml.document" },
    { "pptx",    "application/vnd.openxmlformats-officedocument.presentationml.presentation" },
    { "zip",     "application/zip" },        { "gz",   "application/gzip" },
    { "tar",     "application/x-tar" },      { "npy",  "application/octet-stream" },
    { "mp4",     "video/mp4" },              { "mp3",  "audio/mpeg" },
    { "wav",     "audio/wav" },              { "sqlite", "application/vnd.sqlite3" },
    { "db",      "application/vnd.sqlite3" },
    /* clang-format on */
};

static const struct beginning {
    const char *bytes;
    size_t size;
    const char *mime;
} beginnings[] = {
    /* clang-format off */
    { "\x89PNG\r\n\x1a\n", 8, "image/png" },       { "\xff\xd8\xff",     3, "image/jpeg" },
    { "GIF8",              4, "image/gif" },       { "%PDF-",            5, "application/pdf" },
    { "PK\x03\x04",        4, "application/zip" }, { "\x1f\x8b",         2, "application/gzip" },
    { "PAR1",              4, "application/vnd.apache.parquet" },
    { "SQLite format 3",   15, "application/vnd.sqlite3" },
    /* clang-format on */
};

const char *mime_of(const char *path, const unsigned char *head, size_t head_size)
{
    const char *name = strrchr(path, '/');
    const char *dot = strrchr(name ? name : path, '.');
    if (dot)
        for_each(row, endings)
            if (strcasecmp(row->ending, dot + 1) == 0)
                return row->mime;
    for_each(row, beginnings)
        if (head_size >= row->size && memcmp(head, row->bytes, row->size) == 0)
            return row->mime;
    return "application/octet-stream";
}
