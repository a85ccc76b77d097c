/* log_events.c - see log_events.h. */
#include "model/log_events.h"

static const struct {
    const char *name;
    enum log_level level;
} rows[LOG_EVENTS] = {
#define LOG_EVENT(symbol, name, level, text, remedy) { name, LOG_##level },
#include "model/log_events.def"
#undef LOG_EVENT
};

const char *log_event_name(enum log_event event)
{
    return rows[event].name;
}

enum log_level log_event_level(enum log_event event)
{
    return rows[event].level;
}
