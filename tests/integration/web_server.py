"""web_server.py - the HTTP server behind the tests' upstreams. A client that hangs up is part of many tests: it is no
error of the server, and prints no traceback into the run. Every other failure is printed as ever."""

import http.server
import ssl
import sys


class WebServer(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], (ConnectionError, ssl.SSLError)):
            super().handle_error(request, client_address)
