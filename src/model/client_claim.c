/* client_claim.c - see client_claim.h. */
#include "model/client_claim.h"

#include <string.h>

/* "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" */
static const char form[] = "xx-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx";

bool traceparent_is_valid(const char *text)
{
    static const char zeros[] = "00000000000000000000000000000000";
    if (!text || strlen(text) != sizeof form - 1)
        return false;
    for (size_t i = 0; form[i]; i++)
        if (form[i] == '-' ? text[i] != '-' : !strchr("0123456789abcdef", text[i]))
            return false;
    return strncmp(text, "ff", 2) != 0 &&
           strncmp(text + TRACE_ID_AT, zeros, TRACE_ID_LENGTH) != 0 &&
           strncmp(text + SPAN_ID_AT, zeros, SPAN_ID_LENGTH) != 0;
}

bool traceparent_is_sampled(const char *text)
{
    return (strchr("0123456789", text[sizeof form - 2]) ? text[sizeof form - 2] - '0'
                                                        : text[sizeof form - 2] - 'a' + 10) %
               2 ==
           1;
}
