/* openapi.h - the OpenAPI document, from the tables of routes and of schemas. */
#pragma once

#include "base/bytes.h"
#include "doors/http/http.h"

/* `tables` ends with NULL. */
void openapi_write(const struct route_table *const *tables, struct bytes *out);
