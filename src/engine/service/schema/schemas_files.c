/* schemas_files.c - the bodies for files in sessions, field by field. A path that is not UTF-8 is
 * also given in base64; requests may use either. Types are written as in schema.h. */
#include "engine/service/schema/schema.h"

/* clang-format off */
static const struct property path_request[] = {
    { "path",        "text 0..4095", "absolute, or beneath the folder of the session; or", true },
    { "path_base64", "base64",         "the same if it is no UTF-8", true },
    { 0 },
};
static const struct property file_path[] = {
    { "path",        "string", "" },
    { "path_base64", "base64", "if it is no UTF-8", true },
    { 0 },
};

const struct schema file_schemas[] = {
    { "FileRequest", "Which file or folder", path_request, .example = "{\"path\":\"/workspace/data.csv\"}" },
    { "FileListRequest", "Which folder, and how much of it",
      FIELDS({ "depth", "count 0..64",     "1 if it is left out: what stands in the folder itself", true },
             { "limit", "count 0..100000", "entries; 10,000 if it is left out", true }),
      .first = path_request, .example = "{\"path\":\"/workspace\",\"depth\":2}" },
    { "FileMoveRequest", "From where to where",
      FIELDS({ "from",        "text 0..4095", "or", true },
             { "from_base64", "base64",         "the same if it is no UTF-8", true },
             { "to",          "text 0..4095", "or", true },
             { "to_base64",   "base64",         "the same if it is no UTF-8", true }),
      .example = "{\"from\":\"data.csv\",\"to\":\"old/data.csv\"}" },
    { "FileSignRequest", "The use of a signed URL",
      FIELDS({ "method",    "=GET,PUT",         "GET if it is left out", true },
             { "mode",      "string /^[0-7]{0,4}$/", "of a file that is written, octal from 1 to 777", true },
             { "expires_seconds", "count 1..604800", "300 if it is left out", true }),
      .first = path_request, .example = "{\"path\":\"data.csv\",\"method\":\"GET\",\"expires_seconds\":60}" },
    { "SignedUrl", "A URL that needs no key",
      FIELDS({ "url",     "string",   "without the daemon's own address" },
             { "method",  "=GET,PUT", "" },
             { "expires_at", "moment", "" }) },
    { "FilePath", "The file or folder", file_path, .example = "{\"path\":\"data.csv\"}" },
    { "FileEntry", "What exists at a path",
      FIELDS({ "name",        "string",  "the last part of the path" },
             { "type",        "=folder,file,link,special", "" },
             { "bytes",       "count",   "its size" },
             { "mode",        "string /^[0-7]{3,4}$/", "octal, as in requests" },
             { "modified_at", "moment",  "" },
             { "target",      "string",  "of a link", true },
             { "target_type", "=folder,file,link,special?", "of a link; null: the target does not exist", true }),
      .first = file_path,
      .example = "{\"path\":\"old/data.csv\",\"name\":\"data.csv\",\"type\":\"file\",\"bytes\":12,\"mode\":\"644\",\"modified_at\":\"2026-09-21T14:13:20.000Z\"}" },
    { "FileListing", "The contents of a folder",
      FIELDS({ "truncated", "boolean",     "there are more than `limit`" },
             { "entries",   "[]FileEntry", "sorted by path" }),
      .first = file_path },
    { "FileWritten", "A file that was written",
      FIELDS({ "bytes",       "count",         "its size" },
             { "mode",        "string /^[0-7]{3,4}$/", "octal, as in requests" },
             { "modified_at", "moment",        "" }),
      .first = file_path },
    { "TarUnpacked", "A folder that a tar was unpacked into",
      FIELDS({ "skipped", "[]string", "other than files, folders and links, or outside the folder" }),
      .first = file_path },
    { 0 },
};
/* clang-format on */
