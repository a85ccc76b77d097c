/* mcp_install.h - `glovebox mcp install` and `glovebox mcp try`. */
#pragma once

/* argv[0] is "install". Returns the exit status. */
int mcp_install(int argc, char **argv);

/* argv[0] is "try"; the options of `glovebox mcp` follow. Returns the exit status: 1: a tool
 * failed. */
int mcp_try(int argc, char **argv);
