/* mcp_install.h - `glovebox mcp install`. */
#pragma once

/* argv[0] is "install". Gives the exit status. */
int mcp_install(int argc, char **argv);
