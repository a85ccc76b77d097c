/* secret_file.c - see secret_file.h. */
#include "outbound/secret_file.h"

#include <sys/stat.h>
#include <unistd.h>

static int check(const struct secret_file *closed, const struct stat *facts, error *err)
{
    if (!S_ISREG(facts->st_mode))
        return fail(err, ERR_BAD_REQUEST, "the %s '%s' is no regular file", closed->what,
                    closed->path);
    if (facts->st_uid != 0 && facts->st_uid != geteuid())
        return fail(err, ERR_BAD_REQUEST,
                    "the %s '%s' belongs to user %u; chown it to root, or to user %u", closed->what,
                    closed->path, facts->st_uid, geteuid());
    if (facts->st_mode & (S_IRWXG | S_IRWXO))
        return fail(err, ERR_BAD_REQUEST,
                    "the %s '%s' has mode %04o, others may use it; chmod 600 it", closed->what,
                    closed->path, (unsigned) facts->st_mode & 07777U);
    if (facts->st_size > SECRET_FILE_MAX)
        return fail(err, ERR_BAD_REQUEST, "the %s '%s' is larger than %d bytes", closed->what,
                    closed->path, SECRET_FILE_MAX);
    return 0;
}

int secret_file_read(const struct secret_file *closed, char ret_text[SECRET_FILE_MAX],
                     size_t *ret_size, error *err)
{
    struct stat facts;
    if (fstat(closed->file, &facts) < 0)
        return fail_os(err, "look at the %s '%s'", closed->what, closed->path);
    if (check(closed, &facts, err) < 0)
        return -1;
    ssize_t got = read(closed->file, ret_text, (size_t) facts.st_size);
    if (got < 0)
        return fail_os(err, "read the %s '%s'", closed->what, closed->path);
    *ret_size = (size_t) got;
    return 0;
}
