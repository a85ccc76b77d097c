/* threads.c - four threads, each with a client of its own, and output as it comes.
 *     cc threads.c -o threads -pthread $(pkg-config --cflags --libs libglovebox) */
#include <glovebox.h>
#include <pthread.h>
#include <stdio.h>

/* Called in the thread that runs, with what the program has written at once, which need not be a
 * line; another value than 0 ends the run. */
static int32_t print_output(void *context, int32_t stream, const void *data, size_t length)
{
    fprintf(stream == GLB_STDERR ? stderr : stdout, "thread %d: %.*s", *(int *) context,
            (int) length, (const char *) data);
    return 0;
}

/* Gives `context` if the program ran, NULL if not. */
static void *run(void *context)
{
    void *result = NULL;
    glb_client *client;
    glb_outcome *outcome;
    glb_run_options options = { .code = "import os\n"
                                        "os.write(1, b'begins\\n')\n"
                                        "os.write(1, b'ends\\n')",
                                .policy = "minimal",
                                .on_output = print_output,
                                .context = context };
    if (glb_connect(NULL, 0, &client) != GLB_OK) {
        fprintf(stderr, "%s\n", glb_error_text());
        return NULL;
    }
    if (glb_run(client, &options, sizeof options, &outcome) == GLB_OK) {
        glb_outcome_free(outcome);
        result = context;
    } else {
        fprintf(stderr, "%s\n", glb_error_text());
    }
    glb_close(client);
    return result;
}

int main(void)
{
    pthread_t threads[4];
    int numbers[4];
    int failed = 0;
    for (int i = 0; i < 4; i++) {
        numbers[i] = i;
        if (pthread_create(&threads[i], NULL, run, &numbers[i]) != 0)
            return 1;
    }
    for (int i = 0; i < 4; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        failed |= result == NULL;
    }
    return failed;
}
