/* disk_internal.h - for disk.c (what the disk has) and disk_calls.c (the calls that it answers). */
#pragma once

#include "simulate.h"

#include <sys/stat.h>

enum { NAME_ROOM = 120 };
enum change_kind { CHANGE_ADDED, CHANGE_MOVED, CHANGE_REMOVED };

/* A change of names that the journal does not have yet. */
struct change {
    enum change_kind kind;
    char name[NAME_ROOM], to[NAME_ROOM]; /* beneath the state folder */
    unsigned grave;                      /* number of what had the name before; 0: nothing */
};

bool is_of_state(int fd, struct stat *ret_status);
bool is_faulty(unsigned of_100); /* this call, by the seed */
bool is_left_out(const char *name);

struct change *note_change(enum change_kind kind, const char *name);
/* Keeps what has this name, so that it can come back. Gives  its number, 0: there is nothing. */
unsigned bury(const char *place);

void file_is_new(ino_t inode);
void write_back(ino_t inode, int fd, size_t size);  /* a sync succeeds */
void drop_writes(ino_t inode, int fd, size_t size); /* it fails */
void touch(ino_t inode, off_t at, size_t size);     /* written again */
void changes_are_on_disk(void);
