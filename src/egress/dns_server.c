/* dns_server.c - answers the DNS questions of a sandbox. No question is sent outside, so that none
 * can carry data out (DNS tunnels): a name that a rule allows gets a fake address
 * (fake_addresses.h), every other question is refused. */
#include "egress/egress.h"

#include "base/clock.h"
#include "egress/dns.h"

#include <string.h>
#include <sys/socket.h>

static void tell_refusal(struct channel *channel, const char *name, enum egress_reason reason)
{
    struct egress_record record = { .channel = channel->id,
                                    .reason = (uint16_t) reason,
                                    .label = EGRESS_NO_LABEL,
                                    .route = EGRESS_BY_DNS,
                                    .port = EGRESS_DNS_PORT,
                                    .began_ms = (uint64_t) wall_clock_ms() };
    memcpy(record.name, name, strnlen(name, sizeof record.name - 1));
    link_tell(channel, &record);
}

size_t lookup_answer(struct channel *channel, const unsigned char *message, size_t size,
                     unsigned char *ret_answer)
{
    struct dns_question question;
    struct in_addr address;
    if (dns_read(message, size, &question) < 0)
        return 0;
    enum egress_reason reason = EGRESS_ALLOWED;
    if (!question.has_name)
        reason = EGRESS_BAD_NAME;
    else if (!rules_know(&channel->rules, question.name))
        reason = EGRESS_NO_RULE;
    else if (question.type == DNS_AAAA || question.type == DNS_HTTPS || question.type == DNS_SVCB)
        return dns_answer(&question, DNS_NO_ERROR, NULL, ret_answer); /* no record of this type */
    else if (question.type != DNS_A)
        reason = EGRESS_DNS_TYPE;
    else if (fake_addresses_address(&channel->names, question.name, &address) < 0)
        reason = EGRESS_TOO_MANY;
    if (reason == EGRESS_ALLOWED)
        return dns_answer(&question, DNS_NO_ERROR, &address, ret_answer);
    tell_refusal(channel, question.name, reason);
    return dns_answer(&question, DNS_REFUSED, NULL, ret_answer);
}

/* Resolvers drop an answer that is not from the address that they asked: IP_PKTINFO (ip(7)). */
void lookup_by_udp(struct listener *listener)
{
    for (unsigned i = 0; i < 64; i++) {
        unsigned char question[DNS_QUESTION_MAX + 1];
        unsigned char answer[DNS_ANSWER_MAX];
        struct sockaddr_storage from;
        union {
            struct cmsghdr header;
            char space[128];
        } control;
        struct iovec part = { question, sizeof question };
        struct msghdr message = { .msg_name = &from,
                                  .msg_namelen = sizeof from,
                                  .msg_iov = &part,
                                  .msg_iovlen = 1,
                                  .msg_control = control.space,
                                  .msg_controllen = sizeof control.space };
        ssize_t got = recvmsg(listener->socket, &message, MSG_DONTWAIT);
        if (got < 0)
            return;
        size_t size = lookup_answer(listener->channel, question, (size_t) got, answer);
        if (size == 0)
            continue;
        part = (struct iovec){ answer, size };
        (void) sendmsg(listener->socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
}
