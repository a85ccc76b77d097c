/* version.c - `glovebox version`. */
#include "cli/commands.h"

#include <stdio.h>
#include <string.h>

int command_version(int argc, char **argv)
{
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        (void) puts("  glovebox version           print the version\n"
                    "  glovebox version --json    the same for programs");
    else if (argc == 2 && strcmp(argv[1], "--json") == 0)
        (void) puts("{\"version\":\"" GLOVEBOX_VERSION "\"}");
    else if (argc == 1)
        (void) puts("glovebox " GLOVEBOX_VERSION);
    else
        return complain("version takes no argument '%s'; try glovebox version", argv[1]);
    return 0;
}
