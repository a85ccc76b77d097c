/* main.c - simulate: runs seeds, each a story of some daemons on one state folder.
 *
 *     simulate --policies DIR [--seed N] [--from N] [--seeds N] [--seconds N] [--jobs N]
 *              [--kept FILE] [--plant NAME] [--verbose] [--hashes]
 *
 * A seed that finds something is printed with what was found, and the exit status is 1. --seed N
 * runs one, and --verbose prints its trace. --kept FILE runs those of a list. --seconds bounds the
 * time. --plant NAME puts a bug in. */
#include "simulate.h"

#include "base/clock.h"
#include "keys/store.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { KEPT_MAX = 1000, JOBS_MAX = 64 };

static struct options {
    const char *policies;
    uint64_t from, count;
    uint64_t kept[KEPT_MAX]; /* in place of those from `from` on */
    unsigned jobs, seconds;
    bool is_verbose, prints_hashes;
    enum plant plant;
} options = { .from = 1, .count = 1000, .jobs = 2 };

static const char *const plants[PLANTS] = {
    [PLANT_NONE] = "none",
    [PLANT_NO_INTENT] = "no-intent",
    [PLANT_DOUBLE_FREE] = "double-free",
    [PLANT_OTHER_TENANT] = "other-tenant",
    [PLANT_LOST_SLOT] = "lost-slot",
    [PLANT_NO_KEY] = "no-key",
    [PLANT_FALSE_SYNC] = "false-sync",
};

static _Noreturn void die(const char *what)
{
    perror(what);
    exit(2);
}

/* --- places ----------------------------------------------------------------------------------- */

static char root[64];

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *ftw)
{
    (void) status;
    (void) kind;
    (void) ftw;
    (void) remove(path);
    return 0;
}

static void remove_tree(const char *path)
{
    (void) nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[300];
    (void) snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0 || write(file, text, strlen(text)) < 0)
        die(path);
    (void) close(file);
}

static void copy_file(const char *from, const char *to, const char *name)
{
    static char text[1 << 20];
    char path[300];
    (void) snprintf(path, sizeof path, "%s/%s", from, name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? -1 : read(file, text, sizeof text);
    if (file >= 0)
        (void) close(file);
    (void) snprintf(path, sizeof path, "%s/%s", to, name);
    int copy = size < 0 ? -1 : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (copy < 0 || write(copy, text, (size_t) size) != size)
        die(path);
    (void) close(copy);
}

static void make_folder(char *place, size_t room, const char *above, const char *name)
{
    (void) snprintf(place, room, "%s/%s", above, name);
    if (mkdir(place, 0700) < 0)
        die(place);
}

static void make_keys(void)
{
    struct key_store *store = NULL;
    error err;
    if (key_store_open(places.base, KEYS_WRITE_SOON, &store, &err) < 0)
        die(err.text);
    for (unsigned i = 0; i + 1 < CALLERS; i++) {
        struct api_key key = { .scopes = SCOPE_EVERY, .concurrency = i == 0 ? 3 : 0 };
        (void) snprintf(key.tenant, sizeof key.tenant, "%s", tenant_of(i));
        (void) snprintf(key.name, sizeof key.name, "key%u", i);
        if (key_store_create(store, &key, places.keys[i], &err) < 0)
            die(err.text);
    }
    key_store_close(store);
}

/* What each seed begins with: a template, a policy, keys. */
static void make_places(void)
{
    char template[200];
    const char *above = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    (void) snprintf(root, sizeof root, "%s/glovebox-simulate-XXXXXX", above);
    if (!mkdtemp(root))
        die(root);
    make_folder(places.base, sizeof places.base, root, "base");
    make_folder(places.templates, sizeof places.templates, root, "templates");
    make_folder(places.policies, sizeof places.policies, root, "policies");
    make_folder(template, sizeof template, places.templates, "minimal");
    write_file(template, "manifest.json",
               "{\"name\":\"minimal\",\"digest\":\"sha256:5a\",\"description\":\"\",\"languages\":"
               "{\"python\":{\"file\":\"main.py\",\"command\":[\"python3\",\"{file}\"]},"
               "\"bash\":{\"file\":\"main.sh\",\"command\":[\"bash\",\"{file}\"]}},"
               "\"zygotes\":{\"small\":[\"json\"]},\"env\":{}}");
    copy_file(options.policies, places.policies, "minimal.yaml");
    make_keys();
}

/* --- one seed --------------------------------------------------------------------------------- */

static void begin_seed(uint64_t seed)
{
    bool is_verbose = world->is_verbose;
    memset(world, 0, sizeof *world);
    *world = (struct world){ .seed = seed,
                             .hash = UINT64_C(14695981039346656037),
                             .is_verbose = is_verbose,
                             .plant = options.plant,
                             .clock_us = 1000000000,
                             .wall_offset_us = INT64_C(1800000000) * 1000000 };
    for (unsigned i = 0; i < 4; i++) { /* splitmix64 */
        uint64_t z = (seed += UINT64_C(0x9e3779b97f4a7c15));
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        world->random[i] = z ^ (z >> 31);
    }
    world->sync_each = one_in(3);
    world->boot = 1;
    remove_tree(places.state);
    if (mkdir(places.state, 0700) < 0 || (mkdir(places.graves, 0700) < 0 && errno != EEXIST))
        die(places.state);
    copy_file(places.base, places.state, "keys.db");
    copy_file(places.base, places.state, "keys.secret");
    disk_begin();
}

static struct fault_window some_faults(void)
{
    struct fault_window faults = { 0 };
    if (!one_in(2))
        return faults;
    faults.from_us = world->clock_us + (int64_t) chance(3000000);
    faults.until_us = faults.from_us + (int64_t) chance(4000000);
    unsigned *const kinds[] = { &faults.no_space,   &faults.sync_fails, &faults.is_short,
                                &faults.open_fails, &faults.messages,   &faults.no_memory };
    unsigned *kind = kinds[chance(sizeof kinds / sizeof *kinds)];
    bool may_be_all = kind != &faults.messages && kind != &faults.no_memory;
    *kind = one_in(2) ? 5 : may_be_all ? 100 : 30;
    return faults;
}

/* What the next daemon meets. */
static void choose_daemon(bool is_last)
{
    world->is_calm = is_last;
    world->incarnation++;
    world->ops = 0;
    world->ending = is_last ? ENDS_WELL : (enum ending) chance(ENDINGS);
    world->ends_at_op = 1 + (one_in(5) ? chance(60) : chance(600));
    world->faults = is_last ? (struct fault_window){ 0 } : some_faults();
    if (world->faults.sync_fails > 0 && one_in(2))
        world->ending = ENDS_POWER_CUT;
    world->slow_disk = (unsigned) chance(3) * 20;
    world->spare_writes = 0;
    world->last_fault_us = world->ready_us = 0;
    world->clock_us += (int64_t) chance(5000000);
    if (one_in(4)) /* somebody sets the clock */
        world->wall_offset_us += ((int64_t) chance(200) - 100) * 3600 * 1000000;
    (void) snprintf(places.settings, sizeof places.settings,
                    "pool_min=%u\npool_max=%u\nqueue=%u\nlog_sync=%s\n", (unsigned) chance(3),
                    (unsigned) chance(4), 2 + (unsigned) chance(12),
                    world->sync_each ? "each" : "group");
    trace("daemon %u, %s, log %s, ends %u at %llu", world->incarnation, is_last ? "calm" : "rough",
          world->sync_each ? "each" : "group", world->ending,
          (unsigned long long) world->ends_at_op);
}

static void run_seed(uint64_t seed)
{
    begin_seed(seed);
    unsigned daemons = 1 + (unsigned) chance(4);
    for (unsigned i = 0; i < daemons && !world->finding[0]; i++) {
        choose_daemon(i + 1 == daemons);
        daemon_run();
        if (world->ending == ENDS_POWER_CUT)
            world->boot++;
    }
    if (!world->finding[0])
        verify_log();
    trace("ends");
}

/* --- many ------------------------------------------------------------------------------------- */

struct total {
    uint64_t seeds, steps, runs;
    unsigned found;
};

static void use_worker(unsigned number)
{
    char name[16];
    (void) snprintf(name, sizeof name, "s%u", number);
    (void) snprintf(places.state, sizeof places.state, "%s/%s", root, name);
    (void) snprintf(places.graves, sizeof places.graves, "%s/g%u", root, number);
    world = mmap(NULL, sizeof *world, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (world == MAP_FAILED)
        die("mmap");
    world->is_verbose = options.is_verbose;
    disk_map();
}

static _Noreturn void work(unsigned number, struct total *total)
{
    int64_t end_ms = now_ms() + (int64_t) options.seconds * 1000;
    unsigned found_max = options.plant == PLANT_NONE ? 5 : 1;
    use_worker(number);
    for (uint64_t i = number; i < options.count && total->found < found_max; i += options.jobs) {
        if (options.seconds > 0 && now_ms() > end_ms)
            break;
        run_seed(options.kept[0] ? options.kept[i] : options.from + i);
        total->seeds++;
        total->steps += world->steps;
        total->runs += world->run_count;
        if (options.prints_hashes)
            printf("%llu %016llx\n", (unsigned long long) world->seed,
                   (unsigned long long) world->hash);
        if (world->finding[0]) {
            total->found++;
            printf("seed %llu: %s\n", (unsigned long long) world->seed, world->finding);
        }
        (void) fflush(stdout);
    }
    exit(0);
}

static void do_nothing(int number)
{
    (void) number; /* wait(2) returns, and the folder is removed */
}

static pid_t begin_worker(unsigned number, struct total *total)
{
    pid_t worker = fork();
    if (worker < 0)
        die("fork");
    if (worker > 0)
        return worker;
    (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void) signal(SIGINT, SIG_DFL);
    (void) signal(SIGTERM, SIG_DFL);
    work(number, total);
}

static bool run_workers(struct total *totals)
{
    pid_t workers[JOBS_MAX];
    bool has_failed = false;
    const struct sigaction quiet = { .sa_handler = do_nothing };
    (void) sigaction(SIGINT, &quiet, NULL);
    (void) sigaction(SIGTERM, &quiet, NULL);
    for (unsigned i = 0; i < options.jobs; i++)
        workers[i] = begin_worker(i, &totals[i]);
    for (unsigned i = 0; i < options.jobs; i++) {
        int status = 1;
        if (waitpid(workers[i], &status, 0) < 0) {
            (void) kill(workers[i], SIGKILL);
            (void) waitpid(workers[i], &status, 0);
        }
        has_failed |= status != 0;
    }
    return !has_failed;
}

static int run_seeds(void)
{
    struct total *totals = mmap(NULL, sizeof *totals * options.jobs, PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct total sum = { 0 };
    if (totals == MAP_FAILED)
        die("mmap");
    int64_t began_ms = now_ms();
    bool is_done = run_workers(totals);
    for (unsigned i = 0; i < options.jobs; i++) {
        sum.seeds += totals[i].seeds;
        sum.steps += totals[i].steps;
        sum.runs += totals[i].runs;
        sum.found += totals[i].found;
    }
    printf("%llu seeds, %llu runs, %llu steps in %.1f s; %u found something\n",
           (unsigned long long) sum.seeds, (unsigned long long) sum.runs,
           (unsigned long long) sum.steps, (double) (now_ms() - began_ms) / 1000, sum.found);
    return sum.found > 0 || !is_done || sum.seeds == 0;
}

/* A number in each line; what follows it says why it is there. */
static void read_kept(const char *path)
{
    char line[400];
    FILE *file = fopen(path, "re");
    if (!file)
        die(path);
    options.count = 0;
    while (options.count < KEPT_MAX && fgets(line, sizeof line, file)) {
        uint64_t seed = strtoull(line, NULL, 10);
        if (seed > 0)
            options.kept[options.count++] = seed;
    }
    (void) fclose(file);
}

static uint64_t number(const char *text)
{
    return text ? strtoull(text, NULL, 10) : 0;
}

static void read_option(const char *name, const char *value)
{
    if (strcmp(name, "--policies") == 0)
        options.policies = value;
    else if (strcmp(name, "--seed") == 0)
        options.from = number(value), options.count = options.jobs = 1;
    else if (strcmp(name, "--from") == 0)
        options.from = number(value);
    else if (strcmp(name, "--seeds") == 0)
        options.count = number(value);
    else if (strcmp(name, "--seconds") == 0)
        options.seconds = (unsigned) number(value);
    else if (strcmp(name, "--kept") == 0)
        read_kept(value);
    else if (strcmp(name, "--jobs") == 0)
        options.jobs = (unsigned) number(value);
    else if (strcmp(name, "--plant") == 0)
        for (unsigned i = 0; i < PLANTS; i++)
            options.plant = strcmp(plants[i], value) == 0 ? (enum plant) i : options.plant;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--verbose") == 0)
            options.is_verbose = true;
        else if (strcmp(argv[i], "--hashes") == 0)
            options.prints_hashes = true;
        else if (i + 1 < argc)
            i++, read_option(argv[i - 1], argv[i]);
    }
    if (!options.policies || options.jobs == 0 || options.jobs > JOBS_MAX || sodium_init() < 0) {
        (void) fprintf(stderr, "simulate: --policies DIR must be given\n");
        return 2;
    }
    static struct world before = { .random = { 1, 2, 3, 4 } };
    world = &before;
    clock_begin(); /* the keys are the same each time */
    make_places();
    int result = run_seeds();
    remove_tree(root);
    return result;
}
