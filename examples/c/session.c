/* session.c - a sandbox that is kept: two cells share a variable. Needs a daemon: glovebox serve.
 *     cc session.c -o session $(pkg-config --cflags --libs libglovebox) */
#include <glovebox.h>
#include <stdio.h>
#include <string.h>

/* The daemon's JSON has "id":"ses_…"; a program of its own would use its JSON library. */
static int read_id(const char *json, char id[64])
{
    const char *at = strstr(json, "\"id\":\"");
    return at && sscanf(at + 6, "%63[a-z0-9_]", id) == 1;
}

int main(void)
{
    static const char *const cells[] = { "x = 6 * 7", "x" };
    glb_client *client;
    glb_session_options options = { .policy = "minimal" };
    char *json = NULL, id[64] = "";
    if (glb_connect(NULL, 0, &client) != GLB_OK ||
        glb_session_new(client, &options, sizeof options, &json) != GLB_OK || !read_id(json, id)) {
        fprintf(stderr, "%s\n", glb_error_text());
        return 1;
    }
    glb_text_free(json);
    int status = 0;
    for (int i = 0; i < 2 && status == 0; i++) {
        glb_cell_options cell = { .code = cells[i] };
        glb_outcome *outcome;
        if (glb_session_run(client, id, &cell, sizeof cell, &outcome) != GLB_OK) {
            fprintf(stderr, "%s\n", glb_error_text());
            status = 1;
            continue;
        }
        printf("%s\n", glb_outcome_json(outcome));
        status = glb_outcome_exit_status(outcome);
        glb_outcome_free(outcome);
    }
    glb_session_kill(client, id, NULL);
    glb_close(client);
    return status;
}
