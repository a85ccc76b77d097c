/* dns.h - reads DNS questions about host names, and writes answers (RFC 1035). Pure; any thread.
 * One question in a message, without compression; other parts of a message (EDNS) are ignored. */
#pragma once

#include "contract/egress.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

enum { DNS_QUESTION_MAX = 512, DNS_ANSWER_MAX = 512 };
enum { DNS_A = 1, DNS_AAAA = 28, DNS_SVCB = 64, DNS_HTTPS = 65 };
enum dns_code { DNS_NO_ERROR = 0, DNS_FORMAT_ERROR = 1, DNS_REFUSED = 5 };

struct dns_question {
    uint16_t id;
    uint16_t type;
    bool recursion;            /* was asked for */
    bool has_name;             /* `name` is canonical; else it is not a host name */
    char name[HOST_NAME_SIZE]; /* if it is not a host name, a form that can be shown */
    const unsigned char *text; /* the bytes of the question, within the message */
    size_t text_size;
};

/* Returns -1 if the message is not a question; it then gets no answer. */
int dns_read(const unsigned char *message, size_t size, struct dns_question *ret_question);

/* Writes the answer; `address` NULL for none. Returns its size. */
size_t dns_answer(const struct dns_question *question, enum dns_code code,
                  const struct in_addr *address, unsigned char ret_message[DNS_ANSWER_MAX]);
