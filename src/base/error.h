/* error.h - one failure, held by value.
 *
 * No allocation: it works after fork(), when memory is gone, and crosses a socket as it is. */
#pragma once

#include <stdint.h>

#define PRINTF(text, values) __attribute__((__format__(printf, text, values)))

/* The code that a client gets; its HTTP status and exit status are in model/errors.def. */
enum error_code {
    ERR_NONE,
    ERR_SYSTEM,      /* the kernel refused; `os` says why */
    ERR_PROTOCOL,    /* a peer sent what it may not send */
    ERR_BAD_REQUEST, /* the caller's request cannot be understood */
    ERR_LIMIT,       /* a limit is out of bounds, or above the policy's maximum */
    ERR_POLICY,      /* the policy forbids it */
    ERR_NOT_FOUND,
    ERR_CONFLICT,
    ERR_TOO_LARGE,
    ERR_BUSY,
    ERR_TIMEOUT,
    ERR_UNAVAILABLE, /* a wall cannot be built, a template is missing: the operator must act */
    ERR_UNAUTHORIZED,
    ERR_FORBIDDEN,
    ERR_INTERNAL,
    /* HTTP's own; 15 is the library's GLB_E_CANCELLED. */
    ERR_METHOD = 16,    /* the place knows no such method */
    ERR_NOT_ACCEPTABLE, /* what there is, is not what Accept names */
    ERR_MEDIA_TYPE,     /* what came is not what is understood */
    ERR_RANGE,          /* the part lies beyond the whole */
    ERR_HEADER_TOO_LARGE,
    ERR_FULL,           /* bytes or inodes of the sandbox are used up */
    ERR_UNREACHED,      /* no program listens at the port of a session, or it broke off */
    ERR_QUOTA,          /* what a key may use of runs or processor time is used up, for now */
    ERR_NO_PROGRAM,     /* no program of that name is in the sandbox */
    ERR_NOT_EXECUTABLE, /* it is there, and the kernel does not execute it */
    ERR_COUNT
};

typedef struct error {
    int32_t code;   /* enum error_code */
    int32_t os;     /* the errno behind it, 0 if none */
    char text[488]; /* outermost first: "start sandbox b7: mount '/tmp': No space left on device" */
} error;

_Static_assert(sizeof(error) == 496, "an error is a member of every reply packet");

/* All three fill *err and return -1, so that a failing function ends in one line:
 *     return fail(err, ERR_LIMIT, "memory %s is above the policy's %s", asked, most); */
int fail(error *err, enum error_code code, const char *format, ...) PRINTF(3, 4);
int fail_os(error *err, const char *format, ...) PRINTF(2, 3); /* reads errno */
int under(error *err, const char *format, ...) PRINTF(2, 3);   /* puts context before it */

/* A service ends so if what it was given cannot be used: to start it again would not help. */
enum { EXIT_MISCONFIGURED = 78 };

/* Analyzers look at one file at a time, and would follow what happens where a failure is none. */
#ifdef __clang_analyzer__
#define fail(...)    ((void) fail(__VA_ARGS__), -1)
#define fail_os(...) ((void) fail_os(__VA_ARGS__), -1)
#define under(...)   ((void) under(__VA_ARGS__), -1)
#endif
