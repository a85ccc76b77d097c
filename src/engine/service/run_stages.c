/* run_stages.c - see engine/run/run_stages.h. */
#include "engine/service/run_stages.h"

#include "engine/review/output_check.h"
#include "engine/review/precheck.h"
#include "engine/run/run.h"

const struct run_stages service_run_stages = {
    .check = check_begin,
    .abandon_check = check_abandon,
    .ask = run_ask,
    .ask_checked = run_ask_checked,
    .prepare_output = output_check_prepare,
    .compare_output = output_check_begin,
    .close_output = output_check_close,
    .write_output = output_check_write,
    .free_output = output_check_free,
};
