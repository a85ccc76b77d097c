/* trust_bundle.h - what a sandbox trusts whose TLS is intercepted: the certificate that
 * glovebox-egress has made for this run, and those that its template trusts for all other hosts.
 * Variables that programs read lead to the file. */
#pragma once

#include "base/bytes.h"
#include "engine/catalog/templates.h"

#define CERTIFICATES_PATH "run/certificates.pem" /* below the root of the sandbox */

/* Appends both as PEM, the run's own first. A template that has none, or cannot be read, adds none.
 * Fails  ERR_SYSTEM  no memory. */
int certificates_write(const struct template *template, const char *own, struct bytes *out,
                       error *err);
