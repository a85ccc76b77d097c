/* accounts.c - a list of accounts by key id. Each request looks its key up in the store, so that
 * changes by `glovebox key` take effect at once; usage is kept here. */
#include "engine/schedule/accounts.h"

#include "base/clock.h"
#include "engine/observe/log.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAVE_EVERY_MS = 5000, BUSY_RETRY_S = 1, KEYS_COUNT_MS = 1000, TOKEN_CALLERS_MAX = 4096 };
enum { LOG_USE_SIZE = API_KEY_ID_SIZE + 4 };

/* The name of the log usage, beside the processor time in the same table. */
static void name_log_use(const struct account *account, char ret_name[LOG_USE_SIZE])
{
    (void) snprintf(ret_name, LOG_USE_SIZE, "%s/log", account->key.id);
}

static void save_uses(struct accounts *accounts)
{
    for (struct account *account = accounts->all; account; account = account->next) {
        error err;
        if (!account->use_is_unsaved)
            continue;
        account->use_is_unsaved = false;
        char log[LOG_USE_SIZE];
        name_log_use(account, log);
        if (key_store_save_use(accounts->store, account->key.id, account->rate.day,
                               account->rate.cpu_ms, &err) < 0 ||
            key_store_save_use(accounts->store, log, account->rate.day, account->rate.log_bytes,
                               &err) < 0)
            log_event(KEYS_USE_NOT_SAVED, TEXT("cause", err.text));
    }
}

static void on_save(uv_timer_t *timer)
{
    save_uses(timer->data);
}

int accounts_open(struct accounts *accounts, uv_loop_t *loop, const char *state, error *err)
{
    accounts->local.key.scopes = SCOPE_EVERY;
    accounts->save.data = accounts;
    (void) uv_timer_init(loop, &accounts->save);
    uv_unref((uv_handle_t *) &accounts->save);
    if (!state)
        return 0;
    (void) uv_timer_start(&accounts->save, on_save, SAVE_EVERY_MS, SAVE_EVERY_MS);
    return key_store_open(state, KEYS_WRITE_SOON, &accounts->store, err);
}

void accounts_close(struct accounts *accounts)
{
    save_uses(accounts);
    uv_close((uv_handle_t *) &accounts->save, NULL);
}

void accounts_done(struct accounts *accounts)
{
    for (struct account *account = accounts->all, *next; account; account = next) {
        next = account->next;
        free(account);
    }
    accounts->all = NULL;
    key_store_close(accounts->store);
    accounts->store = NULL;
}

static struct account *find_account(struct accounts *accounts, const char *id)
{
    struct account *account = accounts->all;
    while (account && strcmp(account->key.id, id) != 0)
        account = account->next;
    return account;
}

/* Tenants are compared by name, not by hash: two tenants must never share a zygote. */
static uint32_t number_tenant(struct accounts *accounts, const char *tenant)
{
    for (const struct account *account = accounts->all; account; account = account->next)
        if (strcmp(account->key.tenant, tenant) == 0)
            return account->tenant;
    return ++accounts->tenants;
}

static void name_owner(const char *tenant, char ret_owner[BLOB_OWNER_SIZE])
{
    unsigned char hash[crypto_generichash_BYTES];
    (void) crypto_generichash(hash, sizeof hash, (const unsigned char *) tenant, strlen(tenant),
                              NULL, 0);
    (void) sodium_bin2hex(ret_owner, BLOB_OWNER_SIZE, hash, BLOB_OWNER_SIZE / 2);
}

static struct account *add_account(struct accounts *accounts, const struct api_key *key)
{
    struct account *account = calloc(1, sizeof *account);
    error err;
    if (!account)
        return NULL;
    account->tenant = number_tenant(accounts, key->tenant);
    name_owner(key->tenant, account->owner);
    account->key = *key;
    account->rate.day = wall_clock_ms() / 1000 / 86400;
    char log[LOG_USE_SIZE];
    name_log_use(account, log);
    if (key_store_load_use(accounts->store, key->id, account->rate.day, &account->rate.cpu_ms,
                           &err) < 0 ||
        key_store_load_use(accounts->store, log, account->rate.day, &account->rate.log_bytes,
                           &err) < 0)
        log_event(KEYS_USE_NOT_READ, TEXT("cause", err.text));
    account->next = accounts->all;
    accounts->all = account;
    return account;
}

/* Updates or makes the account of a key that was just read from the store. */
static int take_account(struct accounts *accounts, const struct api_key *key,
                        struct account **ret_account, error *err)
{
    struct account *account = find_account(accounts, key->id);
    if (!account)
        account = add_account(accounts, key);
    if (!account)
        return fail(err, ERR_SYSTEM, "no memory for an account");
    account->key = *key;
    account->turn.active_max =
        key->concurrency > 0 ? key->concurrency : accounts->defaults.concurrency;
    *ret_account = account;
    return 0;
}

void accounts_look_at_issuer(struct accounts *accounts)
{
    if (accounts->oauth && oauth_look(accounts->oauth))
        log_event(OAUTH_KEYS_REFUSED, TEXT("cause", accounts->oauth->failure.text));
}

/* Accounts are never freed, so the number of accounts for subjects of an issuer is bounded. */
static int take_token(struct accounts *accounts, const char *text, struct account **ret_account,
                      error *err)
{
    struct api_key key;
    accounts_look_at_issuer(accounts);
    if (!accounts->oauth || oauth_identify(accounts->oauth, text, &key, err) < 0)
        return accounts->oauth ? -1 : fail(err, ERR_UNAUTHORIZED, "this daemon accepts no tokens");
    const struct account *known = find_account(accounts, key.id);
    if (known && strcmp(known->key.tenant, key.tenant) != 0)
        return fail(err, ERR_UNAUTHORIZED, "this subject has the same id as another one");
    if (!known && accounts->token_callers >= TOKEN_CALLERS_MAX)
        return fail(err, ERR_BUSY, "%d subjects of tokens have been seen since this daemon began",
                    TOKEN_CALLERS_MAX);
    accounts->token_callers += !known;
    if (take_account(accounts, &key, ret_account, err) < 0)
        return -1;
    (*ret_account)->is_of_token = true;
    return 0;
}

int accounts_identify(struct accounts *accounts, const char *text, struct account **ret_account,
                      error *err)
{
    struct api_key key;
    if (oauth_is_token(text))
        return take_token(accounts, text, ret_account, err);
    if (!accounts->store)
        return fail(err, ERR_UNAUTHORIZED, "this daemon has no keys");
    if (key_store_check(accounts->store, text, &key, err) < 0)
        return -1;
    return take_account(accounts, &key, ret_account, err);
}

int accounts_of_key(struct accounts *accounts, const char *id, struct account **ret_account,
                    error *err)
{
    struct api_key key;
    *ret_account = &accounts->local;
    if (*id == '\0')
        return 0;
    if (!accounts->store)
        return fail(err, ERR_UNAUTHORIZED, "this daemon has no keys");
    if (key_store_find(accounts->store, id, &key, err) < 0)
        return -1;
    return take_account(accounts, &key, ret_account, err);
}

bool account_is_good(const struct accounts *accounts, const struct account *account)
{
    const struct api_key *shown = &account->key;
    struct api_key now;
    error unused;
    if (shown->expires_s != 0 && shown->expires_s <= wall_clock_ms() / 1000)
        return false;
    return *shown->id == '\0' || account->is_of_token ||
           key_store_find(accounts->store, shown->id, &now, &unused) == 0;
}

int account_check_scope(const struct account *account, uint32_t scopes, error *err)
{
    if (account->key.scopes & scopes)
        return 0;
    char has[64], needs[64];
    scopes_print(account->key.scopes, has, sizeof has);
    scopes_print(scopes, needs, sizeof needs);
    return fail(err, ERR_FORBIDDEN, "this needs a key with scope %s; key %s has %s", needs,
                account->key.id, *has ? has : "none");
}

int account_check_policy(const struct account *account, const char *policy, error *err)
{
    if (key_allows_policy(&account->key, policy))
        return 0;
    return fail(err, ERR_FORBIDDEN, "key %s may not use policy '%.40s'; it may use: %.120s",
                account->key.id, policy, account->key.policies);
}

bool account_sees(const struct account *account, const struct account *other)
{
    return account->tenant == other->tenant;
}

struct rate_quota account_quota(const struct accounts *accounts, const struct account *account)
{
    const struct api_key *key = &account->key;
    const struct account_defaults *defaults = &accounts->defaults;
    if (key->id[0] == '\0')
        return (struct rate_quota){ 0 };
    return (struct rate_quota){
        .runs_per_minute =
            key->runs_per_minute > 0 ? key->runs_per_minute : defaults->runs_per_minute,
        .cpu_seconds_per_day =
            key->cpu_seconds_per_day > 0 ? key->cpu_seconds_per_day : defaults->cpu_seconds_per_day,
        .log_bytes_per_day = defaults->log_bytes_per_day,
    };
}

static int refuse(struct account *account, enum error_code code, unsigned retry_s, error *err)
{
    account->refused++;
    account->retry_s = retry_s;
    err->code = code;
    return -1;
}

/* Is the queue of this key full? It is shorter for a while after it was full. */
static bool queue_is_full(const struct accounts *accounts, const struct account *account)
{
    uint32_t max = accounts->defaults.queue;
    if (account->key.id[0] == '\0' || max == 0)
        return false;
    if (account->turn.queued >= max)
        return true;
    return overload_is_there(&account->overload, now_ms()) &&
           account->turn.queued >= overload_share(account->turn.active, accounts->busy, 1);
}

/* --- slots ------------------------------------------------------------------------------------ */

static int count_one(void *context, const struct api_key *key)
{
    uint32_t *count = context;
    bool is_good = key->revoked_s == 0 &&
                   (key->expires_s == 0 || key->expires_s > wall_clock_ms() / 1000) &&
                   (key->scopes & (SCOPE_RUN | SCOPE_SESSIONS)) != 0;
    *count += is_good;
    return *count > 1;
}

/* Is there more than one key that may want a slot, used or not, or a caller by token? */
static bool keys_are_several(struct accounts *accounts)
{
    uint32_t count = 0;
    error err;
    if (accounts->token_callers > 1)
        return true;
    if (now_ms() < accounts->keys.until_ms)
        return accounts->keys.are_several;
    if (accounts->store && key_store_list(accounts->store, count_one, &count, &err) < 0)
        log_event(KEYS_NOT_COUNTED, TEXT("cause", err.text));
    accounts->keys.are_several = count > 1;
    accounts->keys.until_ms = now_ms() + KEYS_COUNT_MS;
    return count > 1;
}

static uint32_t slots_of(const struct account *account)
{
    return account->sessions + account->turn.active;
}

static uint32_t slots_of_others(const struct accounts *accounts, const struct account *account)
{
    uint32_t held = slots_of(&accounts->local);
    for (const struct account *each = accounts->all; each; each = each->next)
        held += each == account ? 0 : slots_of(each);
    return held;
}

static bool has_share(const struct accounts *accounts, const struct account *account)
{
    return account->key.id[0] != '\0' && account->turn.active_max == 0 && accounts->slots > 0;
}

bool account_is_at_share(struct accounts *accounts, const struct account *account)
{
    return has_share(accounts, account) &&
           slots_of(account) >=
               fair_share_slots_max(accounts->slots, slots_of_others(accounts, account)) &&
           keys_are_several(accounts);
}

bool account_stays_at_share(struct accounts *accounts, const struct account *account)
{
    uint32_t of_others = accounts->local.sessions;
    for (const struct account *each = accounts->all; each; each = each->next)
        of_others += each == account ? 0 : each->sessions;
    return has_share(accounts, account) &&
           account->sessions >= fair_share_slots_max(accounts->slots, of_others) &&
           keys_are_several(accounts);
}

int account_refuse_slot(struct accounts *accounts, struct account *account, error *err)
{
    (void) fail(err, ERR_BUSY,
                "key %s holds %u of %u slots (%u sessions, %u runs): while there are other keys it "
                "may have 3/4 of what they leave; end a session or a run, or use a key made with "
                "--concurrency",
                account->key.id, slots_of(account), accounts->slots, account->sessions,
                account->turn.active);
    return refuse(account, ERR_BUSY, BUSY_RETRY_S, err);
}

/* --- admission -------------------------------------------------------------------------------- */

static int refuse_log(struct account *account, const struct rate_quota *quota, uint32_t wait_s,
                      error *err)
{
    (void) fail(err, ERR_QUOTA,
                "key %s has added %llu bytes to the log of receipts this day (UTC), and may add "
                "%llu; the next day begins in %u s; names of files and variables are what makes "
                "receipts long",
                account->key.id, (unsigned long long) account->rate.log_bytes,
                (unsigned long long) quota->log_bytes_per_day, wait_s);
    return refuse(account, ERR_QUOTA, wait_s, err);
}

int account_check_log(struct accounts *accounts, struct account *account, error *err)
{
    struct rate_quota quota = account_quota(accounts, account);
    uint32_t wait_s = 0;
    if (rate_ask_log(&account->rate, &quota, wall_clock_ms() / 1000, &wait_s) == RATE_FREE)
        return 0;
    return refuse_log(account, &quota, wait_s, err);
}

void account_charge_log(struct account *account, uint64_t bytes)
{
    rate_charge_log(&account->rate, bytes);
    account->use_is_unsaved = account->key.id[0] != '\0';
}

bool account_has_day(const struct accounts *accounts, const struct account *account)
{
    return account_quota(accounts, account).cpu_seconds_per_day > 0;
}

int account_check_day(const struct accounts *accounts, struct account *account, error *err)
{
    struct rate_quota quota = account_quota(accounts, account);
    uint32_t wait_s;
    if (!rate_day_is_over(&account->rate, &quota, wall_clock_ms() / 1000, &wait_s))
        return 0;
    (void) fail(err, ERR_QUOTA,
                "key %s has used %.1f s of its %u s of processor time of this day (UTC); "
                "the next begins in %u s",
                account->key.id, (double) account->rate.cpu_ms / 1000, quota.cpu_seconds_per_day,
                wait_s);
    return refuse(account, ERR_QUOTA, wait_s, err);
}

int account_admit(struct accounts *accounts, struct account *account, error *err)
{
    struct rate_quota quota = account_quota(accounts, account);
    uint32_t wait_s = BUSY_RETRY_S;
    if (queue_is_full(accounts, account)) {
        overload_refused(&account->overload, now_ms());
        if (account_is_at_share(accounts, account))
            return account_refuse_slot(accounts, account, err);
        (void) fail(err, ERR_BUSY, "%u runs of key %s wait already; try again in a second",
                    account->turn.queued, account->key.id);
        return refuse(account, ERR_BUSY, BUSY_RETRY_S, err);
    }
    switch (rate_ask(&account->rate, &quota, now_ms(), wall_clock_ms() / 1000, &wait_s)) {
    case RATE_FREE:
        break;
    case RATE_LOG_USED_UP:
        return refuse_log(account, &quota, wait_s, err);
    case RATE_RUNS_USED_UP:
        (void) fail(err, ERR_QUOTA,
                    "key %s may start %u runs a minute and has; the next may start in %u s",
                    account->key.id, quota.runs_per_minute, wait_s);
        return refuse(account, ERR_QUOTA, wait_s, err);
    case RATE_CPU_USED_UP:
        return account_check_day(accounts, account, err);
    }
    return 0;
}

uint32_t account_share(const struct accounts *accounts, const struct account *account)
{
    uint32_t served = accounts->local.turn.active;
    uint32_t keys = account->turn.queued == 0; /* its own, if it has no run in the queue yet */
    keys += accounts->local.turn.queued > 0;
    for (const struct account *each = accounts->all; each; each = each->next) {
        served += each->turn.active;
        keys += each->turn.queued > 0;
    }
    return overload_share(served, accounts->busy, keys);
}

struct account *accounts_next(struct accounts *accounts)
{
    struct account *next = fair_share_is_ready(&accounts->local.turn) ? &accounts->local : NULL;
    for (struct account *account = accounts->all; account; account = account->next)
        if (fair_share_is_ready(&account->turn) &&
            (!next || fair_share_is_before(&account->turn, &next->turn)) &&
            !account_is_at_share(accounts, account))
            next = account;
    return next;
}

void account_charge_cpu(struct account *account, uint64_t cpu_ms)
{
    account->cpu_ms += cpu_ms;
    rate_charge(&account->rate, cpu_ms);
    account->use_is_unsaved = account->key.id[0] != '\0';
}

void account_charge(struct account *account, uint64_t cpu_us, const struct verdict *verdict,
                    const uint64_t hits[LIMITS])
{
    account->runs++;
    account->ends[verdict->status]++;
    account_charge_cpu(account, (cpu_us + 999) / 1000);
    for (enum limit_id id = 0; id < LIMITS; id++)
        account->limit_hits[id] += hits[id] > 0;
}
