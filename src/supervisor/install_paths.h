/* install_paths.h - the places of the parts of glovebox.
 *
 * In a build tree everything is next to the program (or next to libglovebox.so); installed, in the
 * folders that were configured with Meson. An environment variable for each place overrides both.
 *
 *   programs          GLOVEBOX_LIBEXEC    next to it, else LIBEXECDIR/glovebox
 *   data              GLOVEBOX_DATA       next to it, else DATADIR/glovebox
 *   policies          GLOVEBOX_POLICIES   a search path: SYSCONFDIR/glovebox/policies, then data,
 *                                         then STATE/policies, then public sets
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

/* A program of glovebox: "glovebox-spawner", "gloveboxd", "glovebox-init". */
int path_of_program(const char *name, char **ret_path, error *err);

/* Read-only data: "policies", "templates", "seccomp/default.bpf". */
int path_of_data(const char *name, char **ret_path, error *err);

/* The folder of the zygote's files, in LIBDIR/glovebox, since one is a module for this
 * architecture. */
int path_of_python(char **ret_path, error *err);

/* The search path of policies: folders separated by ':'. STATE/policies is the last with policies;
 * the folder of public sets follows. */
int path_of_policies(char **ret_path, error *err);
int path_of_policies_of(const char *chosen_state, char **ret_path, error *err);

/* The folder whose folder `sets` has the sets of public registries. */
int path_of_public_sets(char **ret_path, error *err);

/* The folders of policies, for people: "/a (of GLOVEBOX_POLICIES), STATE/policies (the state's)".
 */
int path_of_policies_told(const char *chosen_state, char **ret_text, error *err);

/* The state folder; `chosen` (from --state, or NULL) overrides everything. */
int path_of_state(const char *chosen, char **ret_path, error *err);

/* The state folder of this user itself, without regard to GLOVEBOX_STATE; for users other than root
 * of the host. Without a home directory, one in /tmp. */
int path_of_own_state(char **ret_path, error *err);

/* STATE/templates. */
int path_of_templates(const char *chosen_state, char **ret_path, error *err);

/* The daemon's default socket, which may not exist. */
int path_of_socket(const char *chosen_state, char **ret_path, error *err);

/* Makes a folder of glovebox, and missing folders above it (0755), unless it exists. */
int make_folder(const char *path, unsigned mode, error *err);

/* printf into new memory. Fails  ERR_INTERNAL. */
int format_text(char **ret_text, error *err, const char *format, ...) PRINTF(3, 4);

/* "127.0.0.1:7070" is an address, "run/socket" and "a:b" are paths. */
bool place_is_address(const char *place);
