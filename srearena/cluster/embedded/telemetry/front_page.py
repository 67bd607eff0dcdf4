"""The page at `/` of a telemetry address, for people who open it in a browser.

The APIs have no pages of their own. Clusters of `srearena up` say here where to look instead; in an episode the
addresses answer as the real programs do, and there is no such page.
"""

from __future__ import annotations

from html import escape

from srearena.cluster.embedded.telemetry.query_api import Response

_EXAMPLES = {
    "prometheus": "/api/v1/query?query=up",
    "loki": "/loki/api/v1/labels",
    "jaeger": "/api/services",
    "alertmanager": "/api/v2/alerts",
}
_STYLE = (
    ":root{color-scheme:light dark}h1{font-size:1.3rem}"
    "body{font:16px/1.6 system-ui,sans-serif;max-width:42rem;margin:4rem auto;padding:0 1rem}"
    "code{font-family:ui-monospace,monospace;border:1px solid #8886;border-radius:4px;padding:2px 6px}"
)
_HEADERS = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'",
}


def front_page(program: str, cluster: str) -> Response:
    """The page of one program of a cluster."""
    name, cluster = escape(program.capitalize()), escape(cluster)
    example = escape(_EXAMPLES.get(program, "/"))
    body = (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{name} of {cluster}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>\n'
        f"<body><main><h1>{name} of the cluster {cluster}</h1>\n"
        f"<p>This is an API. To look at the cluster in the browser (services, signals, logs, traces, alerts and an "
        f"expression box), run</p>\n<p><code>srearena view {cluster}</code></p>\n"
        f"<p>Programs use the API with the token that <code>srearena up</code> has printed:</p>\n"
        f"<p><code>curl -H \"Authorization: Bearer $TOKEN\" 'http://…{example}'</code></p>\n"
        f"<p>For Grafana, <code>srearena up … --grafana FILE</code> writes data sources.</p></main></body></html>\n"
    )
    return 200, _HEADERS, body.encode()
