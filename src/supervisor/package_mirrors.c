/* package_mirrors.c - see package_mirrors.h. A line that is not understood is skipped: a host that
 * is not found here is not allowed. */
#include "supervisor/package_mirrors.h"

#include "base/cleanup.h"
#include "base/host_name.h"
#include "base/table.h"
#include "base/text.h"
#include "policy/network_set.h"
#include "supervisor/install_paths.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ADDRESSES_MAX = 12, LINE_MAX = 1024 };

/* "https://mirror.example.org:8443/simple" without name and password. */
struct address {
    char text[POLICY_VARIABLE_VALUE_SIZE];
    char host[HOST_NAME_SIZE];
    bool is_number;
    unsigned port;
};

struct found {
    bool has_main; /* the first is the client's main index or registry */
    unsigned count;
    struct address list[ADDRESSES_MAX];
    char sources[512]; /* where they were found */
};

/* Reads host or host:port. Returns -1 if it is neither. */
static int read_host(const char *text, size_t size, unsigned port, struct address *address)
{
    const char *colon = memchr(text, ':', size);
    size_t length = colon ? (size_t) (colon - text) : size;
    if (colon) {
        char *end;
        port = (unsigned) strtoul(colon + 1, &end, 10);
        if (end != text + size || end == colon + 1)
            return -1;
    }
    if (port == 0 || port > 65535 || length >= sizeof address->host)
        return -1;
    address->port = port;
    address->is_number = host_name_is_literal(text, length);
    if (!address->is_number)
        return host_name_canonical(text, length, address->host);
    memcpy(address->host, text, length);
    address->host[length] = '\0';
    return 0;
}

/* Refuses quotes and characters that have a meaning in YAML or a shell. */
static bool is_plain(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (text[i] <= ' ' || text[i] >= 0x7f || strchr("\"'\\`$<>{}", text[i]))
            return false;
    return size > 0;
}

static int read_address(const char *text, size_t size, struct address *ret_address)
{
    static const struct {
        const char *scheme;
        unsigned port;
    } schemes[] = { { "https://", 443 }, { "http://", 80 } };
    if (!is_plain(text, size))
        return -1;
    for_each(row, schemes) {
        size_t scheme = strlen(row->scheme);
        if (size <= scheme || strncasecmp(text, row->scheme, scheme) != 0)
            continue;
        const char *host = text + scheme;
        size_t length = strcspn(host, "/?#");
        length = length < size - scheme ? length : size - scheme;
        for (const char *at = memchr(host, '@', length); at; at = memchr(host, '@', length)) {
            length -= (size_t) (at + 1 - host);
            host = at + 1;
        }
        int rest = (int) strcspn(host, "?#"); /* the query may hold a token */
        if (host + rest > text + size)
            rest = (int) (text + size - host);
        if (read_host(host, length, row->port, ret_address) < 0 ||
            snprintf(ret_address->text, sizeof ret_address->text, "%s%.*s", row->scheme, rest,
                     host) >= (int) sizeof ret_address->text)
            return -1;
        return 0;
    }
    return -1;
}

static void note_source(struct found *found, const char *source)
{
    size_t used = strlen(found->sources);
    if (!strstr(found->sources, source))
        (void) snprintf(found->sources + used, sizeof found->sources - used, "%s%s",
                        used > 0 ? ", " : "", source);
}

/* Sets the main index; a later one replaces it. */
static void set_main(struct found *found, const char *text, const char *source)
{
    struct address address;
    text += strspn(text, " \t");
    if (read_address(text, strlen(text), &address) < 0 || found->count == ADDRESSES_MAX)
        return;
    if (!found->has_main)
        memmove(found->list + 1, found->list, found->count++ * sizeof found->list[0]);
    found->list[0] = address;
    found->has_main = true;
    note_source(found, source);
}

/* Adds every address among words separated by blanks. */
static void add_words(struct found *found, const char *words, const char *source)
{
    for (words += strspn(words, " \t"); *words; words += strspn(words, " \t")) {
        size_t size = strcspn(words, " \t");
        if (found->count < ADDRESSES_MAX &&
            read_address(words, size, &found->list[found->count]) == 0) {
            found->count++;
            note_source(found, source);
        }
        words += size;
    }
}

typedef void read_line(struct found *found, char *line, const char *file);

/* Reads lines of a file, without blanks and comments at their ends. The file may be missing. */
static void read_lines(struct found *found, const char *file, read_line *read)
{
    char line[LINE_MAX];
    FILE *text = fopen(file, "re");
    while (text && fgets(line, sizeof line, text)) {
        size_t size = strlen(line);
        while (size > 0 && isspace((unsigned char) line[size - 1]))
            line[--size] = '\0';
        if (line[0] != '#' && line[0] != ';')
            read(found, line, file);
    }
    if (text)
        (void) fclose(text);
}

static void read_at_home(struct found *found, const char *name, read_line *read)
{
    auto_text path = NULL;
    error unheard;
    const char *home = environment_text("HOME");
    if (home && format_text(&path, &unheard, "%s/%s", home, name) == 0)
        read_lines(found, path, read);
}

/* The value after `key =`, NULL if the line has another key. */
static char *value_of(char *line, const char *key)
{
    size_t size = strlen(key);
    if (strncmp(line, key, size) != 0)
        return NULL;
    line += size + strspn(line + size, " \t");
    return *line == '=' ? line + 1 : NULL;
}

/* Further indexes may follow on lines that begin with a blank. */
static void read_pip_line(struct found *found, char *line, const char *file)
{
    static bool is_list; /* one thread */
    char *index = value_of(line, "index-url");
    char *more = value_of(line, "extra-index-url");
    if (!more)
        more = value_of(line, "find-links");
    if (index)
        set_main(found, index, file);
    else if (more)
        add_words(found, more, file);
    else if (is_list && isspace((unsigned char) line[0]))
        add_words(found, line, file);
    is_list = more || (is_list && isspace((unsigned char) line[0]));
}

/* PIP_CONFIG_FILE=/dev/null tells pip to read no file at all. */
static void find_pip(struct found *found)
{
    const char *file = environment_text("PIP_CONFIG_FILE");
    const char *index = environment_text("PIP_INDEX_URL");
    const char *more = environment_text("PIP_EXTRA_INDEX_URL");
    bool reads = !file || strcmp(file, "/dev/null") != 0;
    if (reads) {
        read_lines(found, "/etc/pip.conf", read_pip_line);
        read_at_home(found, ".pip/pip.conf", read_pip_line);
        read_at_home(found, ".config/pip/pip.conf", read_pip_line);
    }
    if (file && reads)
        read_lines(found, file, read_pip_line);
    if (index)
        set_main(found, index, "PIP_INDEX_URL");
    if (more)
        add_words(found, more, "PIP_EXTRA_INDEX_URL");
}

/* "registry=URL", and "@scope:registry=URL" for some packages. */
static void read_npm_line(struct found *found, char *line, const char *file)
{
    const char *equals = strchr(line, '=');
    const char *registry = value_of(line, "registry");
    if (registry)
        set_main(found, registry, file);
    else if (equals && line[0] == '@' && strstr(line, ":registry"))
        add_words(found, equals + 1, file);
}

static void find_npm(struct found *found)
{
    const char *registry = environment_text("npm_config_registry");
    read_lines(found, "/etc/npmrc", read_npm_line);
    read_at_home(found, ".npmrc", read_npm_line);
    if (registry)
        set_main(found, registry, "npm_config_registry");
}

/* "deb [options] URI suite…" and "URIs: URI…" */
static void read_apt_line(struct found *found, char *line, const char *file)
{
    if (strncmp(line, "deb ", 4) == 0)
        add_words(found, line + 4, file);
    else if (strncasecmp(line, "URIs:", 5) == 0)
        add_words(found, line + 5, file);
}

static void find_apt(struct found *found)
{
    static const char *const patterns[] = { "/etc/apt/sources.list.d/*.list",
                                            "/etc/apt/sources.list.d/*.sources" };
    read_lines(found, "/etc/apt/sources.list", read_apt_line);
    for_each(pattern, patterns) {
        glob_t files = { 0 };
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
        if (glob(*pattern, 0, NULL, &files) == 0)
            for (size_t i = 0; i < files.gl_pathc; i++)
                read_lines(found, files.gl_pathv[i], read_apt_line);
        globfree(&files);
    }
}

/* Writes a variable: words separated by blanks, as many as fit; nothing if there are none. */
static void write_words(FILE *out, const char *name, const char *const *words, unsigned count)
{
    size_t room = POLICY_VARIABLE_VALUE_SIZE;
    for (unsigned i = 0; i < count && strlen(words[i]) + 1 <= room; i++) {
        room -= strlen(words[i]) + 1;
        (void) fprintf(out, i == 0 ? "  %s: \"%s" : "%s%s", i == 0 ? name : " ", words[i]);
    }
    (void) fputs(count > 0 ? "\"\n" : "", out);
}

static void write_pip_variables(FILE *out, const struct found *found)
{
    const char *more[COUNT_OF(found->list)], *trusted[COUNT_OF(found->list)];
    unsigned more_count = 0, trusted_count = 0;
    for (unsigned i = 0; i < found->count; i++) {
        const struct address *address = &found->list[i];
        if (i > 0)
            more[more_count++] = address->text;
        if (strncmp(address->text, "http:", 5) == 0) /* the operator's own choice */
            trusted[trusted_count++] = address->host;
    }
    write_words(out, "PIP_INDEX_URL", &(const char *){ found->list[0].text }, 1);
    write_words(out, "PIP_EXTRA_INDEX_URL", more, more_count);
    write_words(out, "PIP_TRUSTED_HOST", trusted, trusted_count);
    (void) fputs("  PIP_USER: \"1\"\n  PIP_BREAK_SYSTEM_PACKAGES: \"1\"\n"
                 "  PIP_DISABLE_PIP_VERSION_CHECK: \"1\"\n  PIP_NO_CACHE_DIR: \"1\"\n"
                 "  PIP_RETRIES: \"1\"\n"
                 "  PIP_ROOT_USER_ACTION: ignore\n",
                 out);
}

/* npm runs as many scripts at once in the background as Node.js finds processors in /proc/stat,
 * which is missing in a sandbox. Templates of glovebox give Node.js the number; in others npm would
 * run no script, and end before its work is done. So scripts run in the foreground. */
static void write_npm_variables(FILE *out, const struct found *found)
{
    (void) fprintf(out, "  npm_config_registry: \"%s\"\n", found->list[0].text);
    (void) fputs("  npm_config_update_notifier: \"false\"\n  npm_config_audit: \"false\"\n"
                 "  npm_config_fund: \"false\"\n  npm_config_foreground_scripts: \"true\"\n",
                 out);
}

static const struct host_set {
    const char *name;
    void (*find)(struct found *found);
    void (*write_variables)(FILE *out, const struct found *found); /* NULL: it has none */
    bool has_other_hosts; /* the public registry has its files on other hosts */
} host_sets[] = {
    { "pip", find_pip, write_pip_variables, true },
    { "npm", find_npm, write_npm_variables, false },
    { "apt", find_apt, NULL, false },
};

static bool is_said(const struct found *found, unsigned index)
{
    for (unsigned i = 0; i < index; i++)
        if (found->list[i].port == found->list[index].port &&
            strcmp(found->list[i].host, found->list[index].host) == 0)
            return true;
    return false;
}

/* An IP address needs a rule for a network; "localhost" is that of the host, 127.0.0.1. */
static void write_rule(FILE *out, const struct address *address)
{
    bool is_own = strcmp(address->host, "localhost") == 0;
    if (is_own || address->is_number)
        (void) fprintf(out, "  - {network: \"%s\", ports: [%u]}\n",
                       is_own ? "127.0.0.1" : address->host, address->port);
    else
        (void) fprintf(out, "  - {host: %s, ports: [%u]}\n", address->host, address->port);
}

/* True if the client is configured for this host of the public registry. */
static bool is_configured(const struct found *found, const struct network_rule *rule)
{
    for (unsigned i = 0; i < found->count; i++)
        if (!found->list[i].is_number &&
            host_name_matches(found->list[i].host, rule->host, rule->any_below))
            return true;
    return false;
}

/* Adds the other hosts of a public registry: the index of pip has its files on another host. Not if
 * a mirror is configured instead. */
static void write_public_rest(FILE *out, const struct host_set *set, const struct found *found)
{
    static struct network_set shipped; /* too large for a stack */
    auto_text folder = NULL;
    error unheard;
    bool is_public = false;
    if (path_of_public_sets(&folder, &unheard) < 0 ||
        network_set_load(folder, set->name, &shipped, &unheard) < 0)
        return;
    for (unsigned i = 0; i < shipped.route.count; i++)
        is_public |= is_configured(found, &shipped.route.rules[i]);
    for (unsigned i = 0; i < shipped.route.count && is_public; i++) {
        const struct network_rule *rule = &shipped.route.rules[i];
        if (!is_configured(found, rule))
            (void) fprintf(out, "  - {host: \"%s%s\", ports: [%u]}\n", rule->any_below ? "*." : "",
                           rule->host, rule->ports[rule->port_count - 1]);
    }
}

static void write_set(FILE *out, const struct host_set *set, const struct found *found)
{
    (void) fprintf(out,
                   "# Written by glovebox from %s of this host, each time that it starts. A file\n"
                   "# of this name in a folder `sets` next to your policies comes before it.\n"
                   "name: %s\ndescription: what %s of this host asks; from %.160s\nallow:\n",
                   set->name, set->name, set->name, found->sources);
    for (unsigned i = 0; i < found->count; i++)
        if (!is_said(found, i))
            write_rule(out, &found->list[i]);
    if (set->has_other_hosts)
        write_public_rest(out, set, found);
    if (!set->write_variables)
        return;
    (void) fputs("env:\n", out);
    set->write_variables(out, found);
}

/* Replaces the file by rename(2), since gloveboxd may read it at the same time. */
static int replace_file(const char *path, const struct host_set *set, const struct found *found,
                        error *err)
{
    auto_text fresh = NULL;
    if (format_text(&fresh, err, "%s.new", path) < 0)
        return -1;
    auto_fd file = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (file < 0)
        return fail_os(err, "write '%s'", fresh);
    FILE *out = fdopen(fcntl(file, F_DUPFD_CLOEXEC, 0), "w");
    if (!out)
        return fail_os(err, "write '%s'", fresh);
    write_set(out, set, found);
    bool is_whole = fchmod(file, 0644) == 0 && ferror(out) == 0;
    if (fclose(out) != 0 || !is_whole || rename(fresh, path) < 0)
        return fail_os(err, "write '%s'", path);
    return 0;
}

int host_sets_write(const char *state, error *err)
{
    auto_text above = NULL;
    auto_text folder = NULL;
    if (path_of_state(state, &above, err) < 0 ||
        format_text(&folder, err, "%s/policies/sets", above) < 0 ||
        make_folder(folder, 0755, err) < 0)
        return -1;
    for_each(set, host_sets) {
        static struct found found;
        auto_text path = NULL;
        found = (struct found){ .count = 0 };
        set->find(&found);
        if (format_text(&path, err, "%s/%s.yaml", folder, set->name) < 0 ||
            (found.count > 0 && replace_file(path, set, &found, err) < 0))
            return -1;
        if (found.count == 0 && unlink(path) < 0 && errno != ENOENT)
            return fail_os(err, "remove '%s'", path);
    }
    return 0;
}
