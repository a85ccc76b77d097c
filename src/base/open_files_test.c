/* open_files_test.c - shares of the descriptors of a process. */
#include "base/open_files.h"
#include "base/test.h"

TEST(connections_and_momentary_files_fit_beside_sandboxes)
{
    for (unsigned long max = 64; max < 4096; max++) {
        unsigned connections = open_files_for_connections(max);
        expect(connections >= 32 && connections <= OPEN_FILES_CONNECTIONS_MAX, "%lu: %u", max,
               connections);
        unsigned long last = 0; /* number of the last descriptor that sandboxes may keep */
        while (open_files_leave_room(max, (int) last))
            last++;
        expect(last == 0 || max - last >= connections + 16, "%lu: %lu remain", max, max - last);
    }
}

TEST(half_is_for_connections)
{
    expect(open_files_for_connections(328) == 100, "%u", open_files_for_connections(328));
    expect(open_files_for_connections(1UL << 20) == OPEN_FILES_CONNECTIONS_MAX, "bounded");
    expect(open_files_leave_room(1UL << 20, 1000), "room");
    expect(!open_files_leave_room(1UL << 20, (1 << 20) - 100), "no room");
}

TESTS(CASE(connections_and_momentary_files_fit_beside_sandboxes), CASE(half_is_for_connections))
