/* utf8.c - the table of well-formed byte sequences (Unicode 15, table 3-7). */
#include "base/utf8.h"

#include "base/table.h"

#include <string.h>

/* Range of the first byte, length, and range of the second byte. */
static const struct form {
    unsigned char from, to;
    unsigned char length;
    unsigned char second_from, second_to;
} forms[] = {
    { 0xC2, 0xDF, 2, 0x80, 0xBF }, { 0xE0, 0xE0, 3, 0xA0, 0xBF }, { 0xE1, 0xEC, 3, 0x80, 0xBF },
    { 0xED, 0xED, 3, 0x80, 0x9F }, { 0xEE, 0xEF, 3, 0x80, 0xBF }, { 0xF0, 0xF0, 4, 0x90, 0xBF },
    { 0xF1, 0xF3, 4, 0x80, 0xBF }, { 0xF4, 0xF4, 4, 0x80, 0x8F },
};

int utf8_character(const unsigned char *text, size_t size)
{
    if (size == 0)
        return UTF8_CUT;
    if (text[0] < 0x80)
        return 1;
    for_each(form, forms) {
        if (text[0] < form->from || text[0] > form->to)
            continue;
        if (size < 2)
            return UTF8_CUT;
        if (text[1] < form->second_from || text[1] > form->second_to)
            return UTF8_INVALID;
        for (size_t i = 2; i < form->length; i++) {
            if (i >= size)
                return UTF8_CUT;
            if ((text[i] & 0xC0) != 0x80)
                return UTF8_INVALID;
        }
        return form->length;
    }
    return UTF8_INVALID;
}

size_t utf8_valid_size(const void *text, size_t size)
{
    const unsigned char *at = text;
    size_t left = size;
    while (left > 0) {
        uint64_t eight;
        if (left >= sizeof eight) { /* most text is ASCII: check eight characters at once */
            memcpy(&eight, at, sizeof eight);
            if ((eight & UINT64_C(0x8080808080808080)) == 0) {
                at += sizeof eight;
                left -= sizeof eight;
                continue;
            }
        }
        int length = utf8_character(at, left);
        if (length <= 0)
            break;
        at += length;
        left -= (size_t) length;
    }
    return size - left;
}

size_t utf8_cut_at_end(const void *text, size_t size)
{
    const unsigned char *at = text;
    for (size_t back = 1; back <= 3 && back <= size; back++) {
        unsigned char byte = at[size - back];
        if ((byte & 0xC0) == 0x80)
            continue;
        return utf8_character(at + size - back, back) == UTF8_CUT ? back : 0;
    }
    return 0;
}

/* Unicode's general categories Cc and Cf, and other characters without a shape: fillers, which are
 * letters to Python and JavaScript, and characters that look like blanks. */
static const struct span {
    uint32_t first, last;
} hidden[] = {
    { 0x00, 0x08 },     { 0x0b, 0x1f },     { 0x7f, 0x9f },       { 0xad, 0xad },
    { 0x34f, 0x34f },   { 0x61c, 0x61c },   { 0x115f, 0x1160 },   { 0x17b4, 0x17b5 },
    { 0x180b, 0x180f }, { 0x200b, 0x200f }, { 0x2028, 0x202e },   { 0x2060, 0x206f },
    { 0xfe00, 0xfe0f }, { 0xfeff, 0xfeff }, { 0xfff0, 0xfffb },   { 0x2800, 0x2800 },
    { 0x3164, 0x3164 }, { 0xffa0, 0xffa0 }, { 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff },
};

uint32_t utf8_code_point(const unsigned char *text, int size)
{
    static const unsigned char masks[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
    uint32_t point = text[0] & masks[size];
    for (int i = 1; i < size; i++)
        point = point << 6 | (text[i] & 0x3f);
    return point;
}

size_t utf8_encode(uint32_t point, char ret_text[4])
{
    size_t size = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (size_t i = size - 1; i > 0; i--, point >>= 6)
        ret_text[i] = (char) (0x80 | (point & 0x3F));
    static const unsigned char leads[] = { 0, 0, 0xC0, 0xE0, 0xF0 };
    ret_text[0] = (char) (leads[size] | point);
    return size;
}

bool utf8_is_hidden(uint32_t point)
{
    for_each(span, hidden)
        if (point >= span->first && point <= span->last)
            return true;
    return false;
}
