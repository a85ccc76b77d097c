/* dns.c - see dns.h. */
#include "egress/dns.h"

#include "base/host_name.h"

#include <stdint.h>
#include <string.h>

enum { HEADER = 12, CLASS_INTERNET = 1, ANSWER = 16, NAME_BYTES_MAX = 255, SECONDS_VALID = 60 };
enum { IS_RESPONSE = 0x8000, OPERATION = 0x7800, RECURSION = 0x0100, CAN_RECURSE = 0x0080 };

static unsigned number_at(const unsigned char *at)
{
    return (unsigned) at[0] << 8 | at[1];
}

static void put_number(unsigned char *at, unsigned value)
{
    at[0] = (unsigned char) (value >> 8);
    at[1] = (unsigned char) value;
}

/* Converts labels to text. RFC 1035 allows any byte in a label: one that cannot be in a host name
 * becomes '?', also a dot.
 * Returns how many bytes the name takes, -1 if it does not fit. */
static long read_name(const unsigned char *at, size_t size, struct dns_question *question)
{
    char text[NAME_BYTES_MAX + 1];
    size_t length = 0, used = 0;
    bool is_plain = true;
    for (;;) {
        if (used >= size || at[used] > 63)
            return -1; /* a compression pointer, or the end of the message */
        size_t label = at[used++];
        if (label == 0)
            break;
        if (used + label >= size || length + label + 1 > NAME_BYTES_MAX)
            return -1;
        if (length > 0)
            text[length++] = '.';
        for (size_t i = 0; i < label; i++) {
            unsigned char byte = at[used + i];
            bool is_host = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
                           (byte >= 'A' && byte <= 'Z') || byte == '-' || byte == '_';
            is_plain &= is_host;
            text[length++] = (char) (is_host ? byte : '?');
        }
        used += label;
    }
    question->has_name = is_plain && host_name_canonical(text, length, question->name) == 0;
    if (!question->has_name) {
        length = length < sizeof question->name ? length : sizeof question->name - 1;
        memcpy(question->name, text, length);
        question->name[length] = '\0';
    }
    return (long) used;
}

int dns_read(const unsigned char *message, size_t size, struct dns_question *ret_question)
{
    if (size < HEADER + 5 || size > DNS_QUESTION_MAX)
        return -1;
    unsigned flags = number_at(message + 2);
    if ((flags & (IS_RESPONSE | OPERATION)) != 0 || number_at(message + 4) != 1 ||
        number_at(message + 6) != 0 || number_at(message + 8) != 0 || number_at(message + 10) > 1)
        return -1;
    *ret_question = (struct dns_question){ .id = (uint16_t) number_at(message),
                                           .recursion = flags & RECURSION };
    const unsigned char *at = message + HEADER;
    long used = read_name(at, size - HEADER - 4, ret_question);
    if (used < 0 || number_at(at + used + 2) != CLASS_INTERNET)
        return -1;
    ret_question->type = (uint16_t) number_at(at + used);
    ret_question->text = at;
    ret_question->text_size = (size_t) used + 4;
    return 0;
}

size_t dns_answer(const struct dns_question *question, enum dns_code code,
                  const struct in_addr *address, unsigned char ret_message[DNS_ANSWER_MAX])
{
    memset(ret_message, 0, HEADER);
    put_number(ret_message, question->id);
    put_number(ret_message + 2, IS_RESPONSE | CAN_RECURSE | (question->recursion ? RECURSION : 0U) |
                                    (unsigned) code);
    put_number(ret_message + 4, 1);
    put_number(ret_message + 6, address ? 1 : 0);
    size_t size = HEADER;
    memcpy(ret_message + size, question->text, question->text_size);
    size += question->text_size;
    if (!address)
        return size;
    unsigned char *answer = ret_message + size;
    put_number(answer, 0xc000 | HEADER); /* a pointer to the name in the question */
    put_number(answer + 2, DNS_A);
    put_number(answer + 4, CLASS_INTERNET);
    put_number(answer + 6, 0);
    put_number(answer + 8, SECONDS_VALID);
    put_number(answer + 10, 4);
    memcpy(answer + 12, address, 4);
    return size + ANSWER;
}
