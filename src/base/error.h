/* error.h - a failure, as a plain struct.
 *
 * It needs no allocation, so it works after fork(2) and without memory, and can be sent over a
 * socket. */
#pragma once

#include <stdint.h>

#define PRINTF(text, values) __attribute__((__format__(printf, text, values)))

/* The code that a client gets; its HTTP status and exit status are in model/errors.def. */
enum error_code {
    ERR_NONE,
    ERR_SYSTEM,      /* the kernel refused; `os` says why */
    ERR_PROTOCOL,    /* a peer sent an invalid message */
    ERR_BAD_REQUEST, /* the caller's request cannot be understood */
    ERR_LIMIT,       /* a limit is out of bounds, or above the policy's maximum */
    ERR_POLICY,      /* the policy forbids it */
    ERR_NOT_FOUND,
    ERR_CONFLICT,
    ERR_TOO_LARGE,
    ERR_BUSY,
    ERR_TIMEOUT,
    ERR_UNAVAILABLE, /* a wall cannot be built or a template is missing: a task for the operator */
    ERR_UNAUTHORIZED,
    ERR_FORBIDDEN,
    ERR_INTERNAL,
    /* Errors of HTTP; 15 is GLB_E_CANCELLED of the library. */
    ERR_METHOD = 16,    /* the route has no such method */
    ERR_NOT_ACCEPTABLE, /* no form of the answer is accepted */
    ERR_MEDIA_TYPE,     /* the type of the request's body is not supported */
    ERR_RANGE,          /* the range lies past the end */
    ERR_HEADER_TOO_LARGE,
    ERR_FULL,           /* bytes or inodes of the sandbox are used up */
    ERR_UNREACHED,      /* no program listens at the port of a session, or it closed too early */
    ERR_QUOTA,          /* a key's quota of runs or processor time is used up, for now */
    ERR_NO_PROGRAM,     /* no program of that name is in the sandbox */
    ERR_NOT_EXECUTABLE, /* the file exists, but the kernel does not execute it */
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

/* Exit status of a service whose settings are wrong, so that a restart would not help. */
enum { EXIT_MISCONFIGURED = 78 };

/* Analyzers see one file at a time, and would assume that these functions may return 0. */
#ifdef __clang_analyzer__
#define fail(...)    ((void) fail(__VA_ARGS__), -1)
#define fail_os(...) ((void) fail_os(__VA_ARGS__), -1)
#define under(...)   ((void) under(__VA_ARGS__), -1)
#endif
