/* mcp_install.h - `glovebox mcp install` and `glovebox mcp try`. */
#pragma once

/* argv[0] is "install". Gives the exit status. */
int mcp_install(int argc, char **argv);

/* argv[0] is "try", and the options of `glovebox mcp` follow. Gives the exit status: 1 where a tool
 * has failed. */
int mcp_try(int argc, char **argv);
