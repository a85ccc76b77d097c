/* trust_bundle.h - the certificates for a sandbox whose TLS is intercepted: the one that
 * glovebox-egress has made for this run, and those that its template trusts for all other hosts.
 * Environment variables name the file. */
#pragma once

#include "base/bytes.h"
#include "engine/catalog/templates.h"

#define CERTIFICATES_PATH "run/certificates.pem" /* below the sandbox's root */

/* Appends both as PEM, the run's own first; nothing for a template that has none, or whose file
 * cannot be read. Fails  ERR_SYSTEM  no memory. */
int certificates_write(const struct template *template, const char *own, struct bytes *out,
                       error *err);
