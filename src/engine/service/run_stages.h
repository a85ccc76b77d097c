/* run_stages.h - the stages of runs, for struct runs. */
#pragma once

#include "engine/run/run_stages.h"

extern const struct run_stages service_run_stages;
