/* sha256_test.c - the vectors of FIPS 180-4; and libsodium's portable C against the processor's
 * instructions, for all sizes around a block and pieces of all sizes. */
#include "ledger/sha256.h"

#include "base/table.h"
#include "base/test.h"

#include <sodium.h>
#include <string.h>

TEST(hashes_are_those_of_the_standard)
{
    static const struct {
        const char *text, *hash;
    } vectors[] = {
        { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
        { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
        { "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqr"
          "lm"
          "nopqrsmnopqrstnopqrstu",
          "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
    };
    char hash[SHA256_TEXT_SIZE];
    for_each(vector, vectors) {
        sha256_text_of(vector->text, strlen(vector->text), hash);
        expect(strcmp(hash, vector->hash) == 0, "%s", hash);
    }
    sha256_text_of(NULL, 0, hash);
    expect(strcmp(hash, vectors[0].hash) == 0, "%s", hash);
}

TEST(a_million_characters)
{
    static char thousand[1000];
    struct sha256 sha;
    char hash[SHA256_TEXT_SIZE];
    memset(thousand, 'a', sizeof thousand);
    sha256_begin(&sha);
    for (unsigned i = 0; i < 1000; i++)
        sha256_add(&sha, thousand, sizeof thousand);
    sha256_end_text(&sha, hash);
    expect(strcmp(hash, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0") == 0,
           "%s", hash);
}

TEST(pieces_and_sizes_are_as_in_portable_C)
{
    static unsigned char bytes[300];
    unsigned char wanted[SHA256_SIZE], hash[SHA256_SIZE];
    struct sha256 sha;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char) (i * 151 + 7);
    sha256_begin(&sha);
    for (size_t size = 0; size <= sizeof bytes; size++) {
        (void) crypto_hash_sha256(wanted, bytes, size);
        for (size_t piece = 1; piece <= 130; piece += size < 130 ? 1 : 43) {
            for (size_t at = 0; at < size; at += piece)
                sha256_add(&sha, bytes + at, size - at < piece ? size - at : piece);
            sha256_end(&sha, hash); /* and begins the next */
            expect(memcmp(hash, wanted, sizeof wanted) == 0, "of %zu bytes", size);
        }
        sha256_of(bytes, size, hash);
        expect(memcmp(hash, wanted, sizeof wanted) == 0, "of %zu bytes", size);
    }
}

TESTS(CASE(hashes_are_those_of_the_standard), CASE(a_million_characters),
      CASE(pieces_and_sizes_are_as_in_portable_C))
