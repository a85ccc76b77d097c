/* log_events.h - the lines of gloveboxd's log as plain data: names and levels (log_events.def). */
#pragma once

enum log_level { LOG_ERROR, LOG_WARNING, LOG_NOTICE, LOG_INFO, LOG_DEBUG };

enum log_event {
#define LOG_EVENT(symbol, name, level, text, remedy) LOGGED_##symbol,
#include "model/log_events.def"
#undef LOG_EVENT
    LOG_EVENTS
};

const char *log_event_name(enum log_event event);
enum log_level log_event_level(enum log_event event);
