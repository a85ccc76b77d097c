/* run.c - one run: code in, its output, verdict and exit status out.
 *     cc run.c -o run $(pkg-config --cflags --libs libglovebox) */
#include <glovebox.h>
#include <stdio.h>

int main(void)
{
    glb_client *client;
    glb_outcome *outcome;
    glb_run_options options = { .code = "print(open('data.csv').read().upper())",
                                .policy = "minimal" };
    glb_file file = { .path = "data.csv", .content = "a,b\n", .length = 4 };
    options.files = &file;
    options.file_count = 1;
    options.file_size = sizeof file;
    if (glb_connect(NULL, 0, &client) != GLB_OK) {
        fprintf(stderr, "%s\n", glb_error_text());
        return 1;
    }
    if (glb_run(client, &options, sizeof options, &outcome) != GLB_OK) {
        fprintf(stderr, "%s\n", glb_error_text());
        glb_close(client);
        return 1;
    }
    printf("%s\n", glb_outcome_json(outcome));
    int status = glb_outcome_exit_status(outcome);
    glb_outcome_free(outcome);
    glb_close(client);
    return status;
}
