/* envelope.c - DSSE: written from a template, read by the same template. */
#include "ledger/envelope.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

/* "DSSEv1" SP LEN(type) SP type SP LEN(body) SP body */
static void add_signed_form(struct bytes *out, const char *type, const struct bytes *payload)
{
    bytes_print(out, "DSSEv1 %zu %s %zu ", strlen(type), type, payload->size);
    bytes_add(out, payload->data, payload->size);
}

static void add_base64(struct bytes *out, const unsigned char *data, size_t size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *place = bytes_reserve(out, (size + 2) / 3 * 4);
    if (!place)
        return;
    out->size += (size + 2) / 3 * 4;
    for (; size >= 3; size -= 3, data += 3) {
        *place++ = digits[data[0] >> 2];
        *place++ = digits[(data[0] & 3) << 4 | data[1] >> 4];
        *place++ = digits[(data[1] & 15) << 2 | data[2] >> 6];
        *place++ = digits[data[2] & 63];
    }
    if (size == 0)
        return;
    unsigned char second = size > 1 ? data[1] : 0;
    *place++ = digits[data[0] >> 2];
    *place++ = digits[(data[0] & 3) << 4 | second >> 4];
    *place = '=';
    if (size > 1)
        *place = digits[(second & 15) << 2];
    place++;
    *place++ = '=';
}

int envelope_write(const struct signing_key *key, const char *type, const struct bytes *payload,
                   struct bytes *out, error *err)
{
    auto_bytes form = { 0 };
    unsigned char signature[SIGNATURE_SIZE];
    (void) bytes_reserve(&form, payload->size + 128);
    add_signed_form(&form, type, payload);
    if (form.failed)
        return fail(err, ERR_SYSTEM, "no memory to sign a receipt");
    (void) bytes_reserve(out, payload->size / 3 * 4 + 512);
    (void) crypto_sign_detached(signature, NULL, (const unsigned char *) form.data, form.size,
                                key->secret);
    bytes_add_text(out, "{\"payload\":\"");
    add_base64(out, (const unsigned char *) payload->data, payload->size);
    bytes_print(out, "\",\"payloadType\":\"%s\",\"signatures\":[{\"keyid\":\"%s\",\"sig\":\"", type,
                key->public.id);
    add_base64(out, signature, sizeof signature);
    bytes_add_text(out, "\"}]}");
    return out->failed ? fail(err, ERR_SYSTEM, "no memory to sign a receipt") : 0;
}

struct reading {
    const char *at, *end;
};

static bool skip(struct reading *reading, const char *text)
{
    size_t size = strlen(text);
    if ((size_t) (reading->end - reading->at) < size || memcmp(reading->at, text, size) != 0)
        return false;
    reading->at += size;
    return true;
}

/* Gives the text up to the next quote, which is not consumed. */
static bool span(struct reading *reading, const char **ret_text, size_t *ret_size)
{
    const char *quote = memchr(reading->at, '"', (size_t) (reading->end - reading->at));
    if (!quote)
        return false;
    *ret_text = reading->at;
    *ret_size = (size_t) (quote - reading->at);
    reading->at = quote;
    return true;
}

/* sodium_base642bin() 1.0.18 accepts some bytes above 0x7F as digits. */
static bool is_ascii(const char *text, size_t size)
{
    unsigned char all = 0;
    for (size_t i = 0; i < size; i++)
        all |= (unsigned char) text[i];
    return all < 0x80;
}

static bool read_base64(struct reading *reading, unsigned char *into, size_t room, size_t *ret_size)
{
    const char *text, *end;
    size_t size;
    return span(reading, &text, &size) && is_ascii(text, size) &&
           sodium_base642bin(into, room, text, size, NULL, ret_size, &end,
                             sodium_base64_VARIANT_ORIGINAL) == 0 &&
           end == text + size;
}

static bool read_word(struct reading *reading, char *into, size_t room, const char *allowed)
{
    const char *text;
    size_t size;
    if (!span(reading, &text, &size) || size == 0 || size >= room)
        return false;
    memcpy(into, text, size);
    into[size] = '\0';
    return strspn(into, allowed) == size;
}

static bool read_payload(struct reading *reading, struct bytes *payload)
{
    size_t room = (size_t) (reading->end - reading->at) / 4 * 3 + 3;
    unsigned char *place = (unsigned char *) bytes_reserve(payload, room);
    return place && read_base64(reading, place, room, &payload->size);
}

static bool read_type(struct reading *reading, char type[ENVELOPE_TYPE_SIZE])
{
    return read_word(reading, type, ENVELOPE_TYPE_SIZE, "abcdefghijklmnopqrstuvwxyz0123456789/.+-");
}

int envelope_read(const char *text, size_t size, struct envelope *ret_envelope, error *err)
{
    struct reading reading = { text, text + size };
    struct envelope *envelope = ret_envelope;
    size_t signature = 0;
    *envelope = (struct envelope){ 0 };
    bool is_one = size <= ENVELOPE_MAX && skip(&reading, "{\"payload\":\"") &&
                  read_payload(&reading, &envelope->payload) &&
                  skip(&reading, "\",\"payloadType\":\"") && read_type(&reading, envelope->type) &&
                  skip(&reading, "\",\"signatures\":[{\"keyid\":\"") &&
                  read_word(&reading, envelope->key_id, KEY_ID_SIZE, "0123456789abcdef") &&
                  skip(&reading, "\",\"sig\":\"") &&
                  read_base64(&reading, envelope->signature, SIGNATURE_SIZE, &signature) &&
                  signature == SIGNATURE_SIZE && skip(&reading, "\"}]}");
    bool is_end =
        reading.at == reading.end || (reading.end - reading.at == 1 && *reading.at == '\n');
    if (is_one && is_end)
        return 0;
    envelope_done(envelope);
    return fail(err, ERR_BAD_REQUEST,
                "no envelope of glovebox: byte %zu of %zu is not as it was written",
                (size_t) (reading.at - text), size);
}

void envelope_done(struct envelope *envelope)
{
    bytes_done(&envelope->payload);
}

int envelope_check(const struct envelope *envelope, const struct public_key *key, error *err)
{
    if (strcmp(envelope->key_id, key->id) != 0)
        return fail(err, ERR_POLICY,
                    "it names key %.16s…, not %.16s…; name its own with --public-key FILE or its "
                    "log with --state FOLDER",
                    envelope->key_id, key->id);
    auto_bytes form = { 0 };
    add_signed_form(&form, envelope->type, &envelope->payload);
    if (form.failed)
        return fail(err, ERR_SYSTEM, "no memory to check a signature");
    if (crypto_sign_verify_detached(envelope->signature, (const unsigned char *) form.data,
                                    form.size, key->bytes) != 0)
        return fail(err, ERR_POLICY,
                    "the signature does not fit: it was changed, or signed by "
                    "another key than %.16s…",
                    key->id);
    return 0;
}
