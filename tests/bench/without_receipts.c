/* without_receipts.c - for the bench alone: a gloveboxd whose runs are not noted and leave no
 * receipt, so that what receipts cost can be seen. It is linked with --wrap=run_note and never
 * installed. */
#include "engine/run/run.h"

int __wrap_run_note(struct run *run, const struct run_request *request, error *err);

/* Without a note there is no record of the inputs, and so nothing that a receipt could be made of.
 */
int __wrap_run_note(struct run *run, const struct run_request *request, error *err)
{
    (void) run;
    (void) request;
    (void) err;
    return 0;
}
