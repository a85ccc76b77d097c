/* install_paths.h - where the parts of glovebox lie.
 *
 * In a build tree everything lies next to the program (or next to libglovebox.so); installed, in
 * the folders that Meson was told. Each place has an environment variable that wins over both.
 *
 *   programs          GLOVEBOX_LIBEXEC    next to us, else LIBEXECDIR/glovebox
 *   data              GLOVEBOX_DATA       next to us, else DATADIR/glovebox
 *   policies          GLOVEBOX_POLICIES   a search path: SYSCONFDIR/glovebox/policies, then data,
 *                                         then STATE/policies; behind them public sets
 *   state             GLOVEBOX_STATE      root: /var/lib/glovebox; others: XDG_STATE_HOME/glovebox
 *   runtime           GLOVEBOX_RUNTIME    root: /run/glovebox; others: XDG_RUNTIME_DIR/glovebox,
 *                                         else STATE/run
 *   daemon's socket   GLOVEBOX_SOCKET     RUNTIME/glovebox.sock */
#pragma once

#include "base/error.h"

#include <stdbool.h>

/* All give absolute paths that the caller frees; nothing is created.
 * Fails  ERR_UNAVAILABLE  the place cannot be found; the text names the variable to set
 *        ERR_INTERNAL     out of memory */

/* A program of ours: "glovebox-spawner", "gloveboxd", "glovebox-init". */
int path_of_program(const char *name, char **ret_path, error *err);

/* Read-only data: "policies", "templates", "seccomp/default.bpf". */
int path_of_data(const char *name, char **ret_path, error *err);

/* The folder of the zygote's files: a module for one architecture, so it is in LIBDIR/glovebox. */
int path_of_python(char **ret_path, error *err);

/* The search path of policies: folders with ':' between them; STATE/policies is the last that has
 * policies, behind it stands the folder of public sets. */
int path_of_policies(char **ret_path, error *err);
int path_of_policies_of(const char *chosen_state, char **ret_path, error *err);

/* The folder in whose folder `sets` the sets of public registries lie. */
int path_of_public_sets(char **ret_path, error *err);

/* The folders of policies, for people: "/a (of GLOVEBOX_POLICIES), STATE/policies (the state's)".
 */
int path_of_policies_told(const char *chosen_state, char **ret_text, error *err);

/* The state folder; `chosen` (from --state) wins over everything, NULL if not given. */
int path_of_state(const char *chosen, char **ret_path, error *err);

/* The state folder of this very user, whatever GLOVEBOX_STATE says, for one who is not root or only
 * of a user namespace; without a home, one in /tmp. */
int path_of_own_state(char **ret_path, error *err);

/* STATE/templates. */
int path_of_templates(const char *chosen_state, char **ret_path, error *err);

/* The daemon's default socket, whether it is there or not. */
int path_of_socket(const char *chosen_state, char **ret_path, error *err);

/* Makes a folder of ours and what is missing above it (0755); one that is there is left alone. */
int make_folder(const char *path, unsigned mode, error *err);

/* printf into new memory. Fails  ERR_INTERNAL. */
int format_text(char **ret_text, error *err, const char *format, ...) PRINTF(3, 4);

/* "127.0.0.1:7070" is an address, "run/socket" and "a:b" are paths. */
bool place_is_address(const char *place);
