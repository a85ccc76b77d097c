/* list.c - a row is written in place, and removed again if the list is too long with it. */
#include "ledger/list.h"

#include <assert.h>

void list_begin(struct lists *lists, const char *name, const char *key, struct list *ret_list)
{
    jcs_open_field(lists->json, key, '[');
    *ret_list = (struct list){
        .lists = lists, .name = name, .start = lists->json->out.size, .end = lists->json->out.size
    };
}

static void add_to_hash(struct list *list, size_t from, size_t to)
{
    sha256_add(&list->hash, list->lists->json->out.data + from, to - from);
}

/* The hash is that of the array, with its brackets. */
static void cut(struct list *list)
{
    list->is_cut = true;
    sha256_begin(&list->hash);
    add_to_hash(list, list->start - 1, list->end);
}

void list_row(struct list *list)
{
    struct bytes *out = &list->lists->json->out;
    list->count++;
    if (out->failed)
        return;
    bool fits = out->size - list->start <= list->lists->bytes_max;
    if (!list->is_cut && fits) {
        list->listed++;
        list->end = out->size;
        return;
    }
    if (!list->is_cut)
        cut(list);
    add_to_hash(list, list->end, out->size);
    out->size = list->end;
}

static struct list_rest *add_rest(struct lists *lists, const char *name, uint64_t count)
{
    assert(lists->cut_count < LISTS_MAX);
    struct list_rest *rest = &lists->cut[lists->cut_count++];
    *rest = (struct list_rest){ .name = name, .count = count };
    return rest;
}

void list_end(struct list *list)
{
    jcs_close(list->lists->json, ']');
    if (!list->is_cut)
        return;
    struct list_rest *rest = add_rest(list->lists, list->name, list->count);
    sha256_add(&list->hash, "]", 1);
    sha256_end_text(&list->hash, rest->sha256);
}

void list_unknown(struct lists *lists, const char *name, const char *key, uint64_t count)
{
    jcs_open_field(lists->json, key, '[');
    jcs_close(lists->json, ']');
    if (count > 0)
        (void) add_rest(lists, name, count);
}

void lists_write(const struct lists *lists)
{
    jcs_open_field(lists->json, "shortened", '{');
    for (size_t i = 0; i < lists->cut_count; i++) {
        const struct list_rest *rest = &lists->cut[i];
        jcs_open_field(lists->json, rest->name, '{');
        jcs_count_field(lists->json, "count", rest->count);
        jcs_text_field(lists->json, "sha256", rest->sha256[0] ? rest->sha256 : NULL);
        jcs_close(lists->json, '}');
    }
    jcs_close(lists->json, '}');
}
