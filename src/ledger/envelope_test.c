/* envelope_test.c - a signed envelope can be read again, and a change of any byte is detected. */
#include "ledger/envelope.h"

#include "base/table.h"
#include "base/test.h"
#include "ledger/checkpoint.h"

#include <sodium.h>
#include <string.h>

static void make_key(struct signing_key *key)
{
    unsigned char seed[32] = { 1, 2, 3 };
    (void) crypto_sign_seed_keypair(key->public.bytes, key->secret, seed);
    public_key_fill(&key->public, NULL);
}

/* Calls `holds` with each byte of the text changed in each of these ways; every call must fail. */
static void change_every_byte(const char *text, size_t size,
                              bool (*holds)(const char *text, size_t size,
                                            const struct public_key *key),
                              const struct public_key *key)
{
    static const unsigned char ways[] = { 0x01, 0x02, 0x04, 0x10, 0x20, 0x80 };
    auto_bytes copy = { 0 };
    bytes_add(&copy, text, size);
    (void) bytes_text(&copy);
    for (size_t at = 0; at < size; at++)
        for_each(way, ways) {
            copy.data[at] = (char) (copy.data[at] ^ *way);
            expect(!holds(copy.data, size, key), "byte %zu may change by %02x", at, *way);
            copy.data[at] = (char) (copy.data[at] ^ *way);
        }
}

static bool envelope_holds(const char *text, size_t size, const struct public_key *key)
{
    struct envelope envelope;
    error err;
    if (envelope_read(text, size, &envelope, &err) < 0)
        return false;
    bool holds = envelope_check(&envelope, key, &err) == 0;
    envelope_done(&envelope);
    return holds;
}

static bool checkpoint_holds(const char *text, size_t size, const struct public_key *key)
{
    struct merkle_head head;
    error err;
    (void) size;
    return checkpoint_read(text, key, &head, &err) == 0;
}

TEST(no_byte_of_an_envelope_changes_unseen)
{
    struct signing_key key;
    auto_bytes payload = { 0 };
    auto_bytes text = { 0 };
    error err;
    make_key(&key);
    bytes_add_text(&payload, "{\"hello\":\"world\"}");
    require(envelope_write(&key, TYPE_STATEMENT, &payload, &text, &err) == 0, "%s", err.text);
    expect(envelope_holds(text.data, text.size, &key.public), "it does not hold unchanged");
    change_every_byte(text.data, text.size, envelope_holds, &key.public);
    for (size_t size = 0; size < text.size; size++)
        expect(!envelope_holds(text.data, size, &key.public), "%zu bytes of it hold", size);
}

TEST(every_length_of_payload_comes_back)
{
    struct signing_key key;
    auto_bytes payload = { 0 };
    make_key(&key);
    for (unsigned size = 0; size < 70; size++) {
        auto_bytes text = { 0 };
        struct envelope envelope;
        error err;
        require(envelope_write(&key, TYPE_EVENT, &payload, &text, &err) == 0 &&
                    envelope_read(text.data, text.size, &envelope, &err) == 0,
                "%u: %s", size, err.text);
        expect(envelope.payload.size == size &&
                   (size == 0 || memcmp(envelope.payload.data, payload.data, size) == 0) &&
                   strcmp(envelope.type, TYPE_EVENT) == 0 &&
                   envelope_check(&envelope, &key.public, &err) == 0,
               "%u bytes", size);
        envelope_done(&envelope);
        char byte = (char) (size * 37);
        bytes_add(&payload, &byte, 1);
    }
}

/* The example of the protocol's page:
 * https://github.com/secure-systems-lab/dsse/blob/master/protocol.md */
TEST(what_is_signed_is_the_published_encoding)
{
    struct signing_key key;
    struct envelope envelope;
    auto_bytes payload = { 0 };
    auto_bytes text = { 0 };
    error err;
    static const char published[] = "DSSEv1 29 http://example.com/HelloWorld 11 hello world";
    make_key(&key);
    bytes_add_text(&payload, "hello world");
    require(envelope_write(&key, "http://example.com/HelloWorld", &payload, &text, &err) == 0, "%s",
            err.text);
    const char *signature = strstr(bytes_text(&text), "\"sig\":\"") + 7;
    require(sodium_base642bin(envelope.signature, sizeof envelope.signature, signature,
                              strcspn(signature, "\""), NULL, NULL, NULL,
                              sodium_base64_VARIANT_ORIGINAL) == 0,
            "no signature");
    expect(crypto_sign_verify_detached(envelope.signature, (const unsigned char *) published,
                                       sizeof published - 1, key.public.bytes) == 0,
           "something else was signed");
}

TEST(no_byte_of_a_checkpoint_changes_unseen)
{
    struct signing_key key;
    struct merkle_head head = { .size = 1234567 }, again;
    char text[CHECKPOINT_SIZE];
    error err;
    make_key(&key);
    memset(&head.root, 0xA5, sizeof head.root);
    checkpoint_print(&key, &head, text);
    require(checkpoint_read(text, &key.public, &again, &err) == 0, "%s", err.text);
    expect(again.size == head.size && merkle_equal(&again.root, &head.root), "another head");
    change_every_byte(text, strlen(text), checkpoint_holds, &key.public);
}

TEST(a_public_key_is_read_as_it_is_printed)
{
    struct signing_key key;
    struct public_key again;
    char line[KEY_TEXT_SIZE], pem[KEY_TEXT_SIZE];
    error err;
    make_key(&key);
    public_key_print(&key.public, line);
    public_key_print_pem(&key.public, pem);
    const char *const texts[] = { line, pem };
    for_each(text, texts) {
        require(public_key_read(*text, &again, &err) == 0, "%s: %s", *text, err.text);
        expect(memcmp(again.bytes, key.public.bytes, sizeof again.bytes) == 0, "another key");
        for (size_t at = 0; at < strlen(*text); at++) {
            char copy[KEY_TEXT_SIZE];
            (void) snprintf(copy, sizeof copy, "%s", *text);
            copy[at] = copy[at] == 'A' ? 'B' : 'A';
            bool other = public_key_read(copy, &again, &err) == 0 &&
                         memcmp(again.bytes, key.public.bytes, sizeof again.bytes) == 0;
            expect(!other, "byte %zu of %s may change", at, *text);
        }
    }
}

TESTS(CASE(no_byte_of_an_envelope_changes_unseen), CASE(every_length_of_payload_comes_back),
      CASE(what_is_signed_is_the_published_encoding), CASE(no_byte_of_a_checkpoint_changes_unseen),
      CASE(a_public_key_is_read_as_it_is_printed))
