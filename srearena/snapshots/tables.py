"""Tables of a recording: their columns, and the SQL that fills them from each format of the sources.

The expression for a column depends only on the header of the file, not on the name of the layout: raw and processed
OpenTelemetry tables get the same columns. Times are UTC, column names include the unit of durations, and text that is
not a time or not JSON becomes NULL.
"""

from __future__ import annotations

from collections.abc import Callable

SCHEMAS: dict[str, dict[str, str]] = {
    "alerts": {
        "observed_at": "TIMESTAMP",
        "alertname": "VARCHAR",
        "state": "VARCHAR",
        "severity": "VARCHAR",
        "namespace": "VARCHAR",
        "entity": "VARCHAR",
        "active_at": "TIMESTAMP",
        "value": "DOUBLE",
        "labels": "VARCHAR",
        "annotations": "VARCHAR",
        "file": "VARCHAR",
    },
    "events": {
        "time": "TIMESTAMP",
        "observed_at": "TIMESTAMP",
        "first_time": "TIMESTAMP",
        "type": "VARCHAR",
        "reason": "VARCHAR",
        "message": "VARCHAR",
        "count": "BIGINT",
        "kind": "VARCHAR",
        "namespace": "VARCHAR",
        "name": "VARCHAR",
        "component": "VARCHAR",
        "uid": "VARCHAR",
        "watch_type": "VARCHAR",
    },
    "objects": {
        "observed_at": "TIMESTAMP",
        "kind": "VARCHAR",
        "namespace": "VARCHAR",
        "name": "VARCHAR",
        "api_version": "VARCHAR",
        "uid": "VARCHAR",
        "resource_version": "VARCHAR",
        "created_at": "TIMESTAMP",
        "deleted_at": "TIMESTAMP",
        "digest": "UBIGINT",
        "body": "VARCHAR",
    },
    "logs": {
        "time": "TIMESTAMP",
        "service": "VARCHAR",
        "severity": "VARCHAR",
        "severity_number": "INTEGER",
        "body": "VARCHAR",
        "template": "VARCHAR",
        "trace_id": "VARCHAR",
        "span_id": "VARCHAR",
        "namespace": "VARCHAR",
        "pod": "VARCHAR",
        "deployment": "VARCHAR",
        "attributes": "VARCHAR",
    },
    "spans": {
        "time": "TIMESTAMP",
        "trace_id": "VARCHAR",
        "span_id": "VARCHAR",
        "parent_id": "VARCHAR",
        "name": "VARCHAR",
        "kind": "VARCHAR",
        "service": "VARCHAR",
        "namespace": "VARCHAR",
        "pod": "VARCHAR",
        "duration_ns": "BIGINT",
        "status": "VARCHAR",
        "status_message": "VARCHAR",
        "attributes": "VARCHAR",
        "event_names": "VARCHAR",
        "event_attributes": "VARCHAR",
        # Hashes of the ids of trace, span and parent: joins over numbers are much faster than over text.
        "trace_key": "UBIGINT",
        "span_key": "UBIGINT",
        "parent_key": "UBIGINT",
    },
    "metrics": {
        "object_kind": "VARCHAR",
        "object_name": "VARCHAR",
        "metric": "VARCHAR",
        "time": "TIMESTAMP",
        "value": "DOUBLE",
        "namespace": "VARCHAR",
        "le": "VARCHAR",
        "metric_type": "VARCHAR",
        "status_code": "VARCHAR",
        "labels": "VARCHAR",
    },
}

MACROS = (
    # Go's `2025-01-02 03:04:05 +0000 UTC`, epochs in s, ms, µs or ns, and ISO 8601; UTC without a zone.
    r"""
    CREATE OR REPLACE MACRO odd_instant(t) AS CASE
      WHEN regexp_full_match(t, '\d{9,10}(\.\d+)?') THEN make_timestamp(CAST(CAST(t AS DOUBLE) * 1000000 AS BIGINT))
      WHEN regexp_full_match(t, '\d{11,13}(\.\d+)?') THEN make_timestamp(CAST(CAST(t AS DOUBLE) * 1000 AS BIGINT))
      WHEN regexp_full_match(t, '\d{14,16}') THEN make_timestamp(CAST(t AS BIGINT))
      WHEN regexp_full_match(t, '\d{17,19}') THEN make_timestamp(TRY_CAST(t AS BIGINT) // 1000)
      ELSE CAST(TRY_CAST(regexp_replace(t, ' ?([+-]\d{2}):?(\d{2})( [A-Z]{2,5})?$', '\1:\2') AS TIMESTAMPTZ)
        AS TIMESTAMP) END
    """,
    # Most times have no zone or end in Z; measured: a cast without zones takes a tenth of the time of one with zones.
    r"""
    CREATE OR REPLACE MACRO any_instant(t) AS coalesce(
      CASE WHEN ends_with(t, 'Z') THEN TRY_CAST(t AS TIMESTAMP)
        WHEN length(t) BETWEEN 19 AND 29 AND NOT contains(t, '+') AND t NOT LIKE '____-__-__%-%'
        AND right(t, 1) BETWEEN '0' AND '9' THEN TRY_CAST(t AS TIMESTAMP) END,
      CAST(TRY_CAST(t AS TIMESTAMPTZ) AS TIMESTAMP), odd_instant(t))
    """,
    # Go writes the year 1 for no time; Python has no years after 9999.
    r"""
    CREATE OR REPLACE MACRO instant(t) AS CASE
      WHEN any_instant(t) BETWEEN TIMESTAMP '1970-01-01' AND TIMESTAMP '9999-12-30' THEN any_instant(t) END
    """,
    # A log line without variable parts (ids, addresses, numbers), so that lines of the same event have equal templates.
    r"""
    CREATE OR REPLACE MACRO template(t) AS regexp_replace(CASE WHEN strlen(t) > 600 THEN left(t, 600) ELSE t END,
      '\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b|\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b|\b(?:0x)?[0-9a-fA-F]{16,}\b|\d+(?:\.\d+)?',
      '<*>', 'g')
    """,
)


def identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


class Header:
    """The columns of a file, looked up by any of their known names, ignoring case."""

    def __init__(self, names: list[str], resources: bool = False) -> None:
        """`resources`: the parsed resource attributes are available as columns."""
        self._by_name = {name.lower(): name for name in reversed(names)}
        self._resources = resources

    def has(self, *names: str) -> bool:
        return any(name.lower() in self._by_name for name in names)

    def column(self, *names: str) -> str:
        """The first existing column of these names, with empty text as NULL."""
        for name in names:
            if name.lower() in self._by_name:
                return f"nullif({identifier(self._by_name[name.lower()])}, '')"
        return "CAST(NULL AS VARCHAR)"

    def attribute(self, key: str, *columns: str) -> str:
        """The value of one key in attribute columns, in any of the three formats."""
        values = [self._value(key, c) for c in columns if self.has(c)]
        return f"coalesce({', '.join(values)})" if values else "CAST(NULL AS VARCHAR)"

    def _value(self, key: str, column: str) -> str:
        value = _attribute_value(key, self.column(column))
        if not self._resources or column != RESOURCES:
            return value
        return f"CASE WHEN {RESOURCE_MAP} IS NOT NULL THEN {identifier(_RESOURCE_PREFIX + key)} ELSE {value} END"


class Document:
    """Values extracted from the JSON of a row in one pass, since parsing dominates the cost."""

    def __init__(self) -> None:
        self._paths: list[str] = []
        self._times: list[str] = []

    def text(self, path: str) -> str:
        """The text at a path (`$.a.b`), with empty text as NULL."""
        return f"nullif({self.value(path)}, '')"

    def value(self, path: str) -> str:
        """The value at a path as text; lists and objects as JSON."""
        if path not in self._paths:
            self._paths.append(path)
        return f"picked[{self._paths.index(path) + 1}]"

    def time(self, path: str) -> str:
        """The time at a path. One expression converts all: `instant` is long, and planning it costs milliseconds."""
        text = self.text(path)
        if text not in self._times:
            self._times.append(text)
        return f"instants[{self._times.index(text) + 1}]"

    def unwrapped(self, column: str, source: str) -> str:
        """The rows of `source` with the document `j` of a column, and the extracted values.

        Watch events (`type`, `object`) are unwrapped; their type is in `watch`. No Kubernetes object has a field
        `object` that is a map itself."""
        inside = [path.replace("$", "$.object", 1) for path in self._paths]
        paths = ["$.type", "$.object", *self._paths, *inside]
        extracted = f"json_extract_string(whole, [{', '.join(literal(path) for path in paths)}]) AS extracted"
        plain, enveloped = (
            f"extracted[{3 + place * len(self._paths)} : {2 + (place + 1) * len(self._paths)}]" for place in (0, 1)
        )
        rows = f"SELECT *, TRY_CAST({column} AS JSON) AS whole FROM ({source})"
        unwrapped = f"""SELECT *, CASE WHEN extracted[2] LIKE '{{%' THEN nullif(extracted[1], '') END AS watch,
            CASE WHEN extracted[2] LIKE '{{%' THEN CAST(extracted[2] AS JSON) ELSE whole END AS j,
            CASE WHEN extracted[2] LIKE '{{%' THEN {enveloped} ELSE {plain} END AS picked
            FROM (SELECT *, {extracted} FROM ({rows}))"""
        times = f"list_transform([{', '.join(self._times)}], lambda text: instant(text))"
        return f"SELECT *, {times} AS instants FROM ({unwrapped})"


RESOURCES = "ResourceAttributes"
RESOURCE_MAP = "resource_map"
_RESOURCE_KEYS = ("k8s.namespace.name", "k8s.pod.name", "k8s.deployment.name", "service.name")
_RESOURCE_PREFIX = "resource "


def _attribute_value(key: str, column: str) -> str:
    escaped = key.replace(".", r"\.")
    pattern = literal(rf"""(?:['"]{escaped}['"]\s*:\s*['"]?|[\[ ]{escaped}:)([^'"\]\s,}}]+)""")
    # Checking for the key first is fast, and most maps do not contain it.
    return f"CASE WHEN contains({column}, {literal(key)}) THEN nullif(regexp_extract({column}, {pattern}, 1), '') END"


def resource_table(table: str, header: list[str], relation: str, sample: int) -> str | None:
    """The SELECT of the distinct resources in a file's first rows and their attributes; `None` if it has none."""
    columns = Header(header)
    if table not in ("logs", "spans") or not columns.has(RESOURCES):
        return None
    picks = ", ".join(
        f"{_attribute_value(key, RESOURCE_MAP)} AS {identifier(_RESOURCE_PREFIX + key)}" for key in _RESOURCE_KEYS
    )
    first = f"SELECT {columns.column(RESOURCES)} AS {RESOURCE_MAP} FROM {relation} LIMIT {sample}"
    return f"SELECT {RESOURCE_MAP}, {picks} FROM (SELECT DISTINCT * FROM ({first}) WHERE {RESOURCE_MAP} IS NOT NULL)"


def _events(h: Header) -> tuple[Document | None, dict[str, str]]:
    if h.has("object_kind", "object_name"):
        kinds = [h.column("event_kind"), h.column("event_type"), h.column("type")]
        chosen = " ".join(f"WHEN {k} IN ('Normal', 'Warning') THEN {k}" for k in kinds)
        return None, {
            "time": f"coalesce(instant({h.column('event_time')}), instant({h.column('timestamp')}))",
            "observed_at": f"instant({h.column('timestamp', 'log_timestamp', 'event_time')})",
            "first_time": f"instant({h.column('first_timestamp')})",
            "type": f"CASE {chosen} END",
            "reason": h.column("reason"),
            "message": h.column("message"),
            "count": f"coalesce(TRY_CAST(TRY_CAST({h.column('event_count', 'count')} AS DOUBLE) AS BIGINT), 1)",
            "kind": h.column("object_kind"),
            "namespace": f"coalesce({h.column('object_namespace')}, {h.column('namespace')})",
            "name": h.column("object_name"),
            "component": h.column("source_component"),
            "uid": h.column("uid"),
            "watch_type": h.column("watch_type"),
        }
    j = Document()

    def about(name: str) -> str:
        return f"coalesce({j.text(f'$.involvedObject.{name}')}, {j.text(f'$.regarding.{name}')})"

    # In events.k8s.io/v1 the old fields are named deprecated…
    first = ("firstTimestamp", "deprecatedFirstTimestamp")
    named = ("lastTimestamp", "deprecatedLastTimestamp", "series.lastObservedTime", "eventTime", *first)
    times = ", ".join(j.time(f"$.{name}") for name in named)
    observed = f"coalesce(instant({h.column('Timestamp')}), instant({h.column('TimestampTime')}))"
    count = ", ".join(j.text(f"$.{name}") for name in ("count", "deprecatedCount", "series.count"))
    components = ("source.component", "deprecatedSource.component", "reportingComponent", "reportingController")
    component = ", ".join(j.text(f"$.{name}") for name in components)
    return j, {
        "time": f"coalesce({times}, {observed})",
        "observed_at": observed,
        "first_time": f"coalesce({', '.join(j.time(f'$.{name}') for name in first)})",
        "type": j.text("$.type"),
        "reason": j.text("$.reason"),
        "message": f"coalesce({j.text('$.message')}, {j.text('$.note')})",
        "count": f"coalesce(TRY_CAST(coalesce({count}) AS BIGINT), 1)",
        "kind": about("kind"),
        "namespace": f"coalesce({about('namespace')}, {j.text('$.metadata.namespace')}, "
        f"{h.attribute('k8s.namespace.name', 'ResourceAttributes', 'LogAttributes')})",
        "name": about("name"),
        "component": f"coalesce({component})",
        "uid": j.text("$.metadata.uid"),
        "watch_type": "watch",
    }


def _objects(h: Header) -> tuple[Document | None, dict[str, str]]:
    j = Document()
    observed = f"coalesce(instant({h.column('Timestamp')}), instant({h.column('TimestampTime')}))"
    body = 'json_merge_patch(j, \'{"status":null,"metadata":null}\')'
    parts = ", ".join(
        j.value(f"$.metadata.{name}")
        for name in ("labels", "annotations", "ownerReferences", "finalizers", "deletionTimestamp", "uid")
    )
    return j, {
        "observed_at": observed,
        "kind": f"coalesce({j.text('$.kind')}, {h.column('object_kind')})",
        "namespace": f"CASE WHEN j IS NULL THEN {h.column('namespace')} ELSE {j.text('$.metadata.namespace')} END",
        "name": f"coalesce({j.text('$.metadata.name')}, {h.column('object_name')})",
        "api_version": f"coalesce({j.text('$.apiVersion')}, {h.column('api_version')})",
        "uid": j.text("$.metadata.uid"),
        "resource_version": j.text("$.metadata.resourceVersion"),
        "created_at": j.time("$.metadata.creationTimestamp"),
        "deleted_at": f"coalesce({j.time('$.metadata.deletionTimestamp')}, "
        f"CASE WHEN watch = 'DELETED' THEN {observed} END)",
        # Hash of the parts in which versions may differ, without status; `differences` compares exactly later.
        "digest": f"hash({body}, {parts})",
        "body": f"coalesce(CAST(j AS VARCHAR), {h.column('Body')})",
    }


def _logs(h: Header) -> tuple[Document | None, dict[str, str]]:
    maps = ("ResourceAttributes", "LogAttributes")
    number = f"TRY_CAST(TRY_CAST({h.column('SeverityNumber', 'severity_number')} AS DOUBLE) AS INTEGER)"
    by_number = (
        f"CASE WHEN {number} BETWEEN 1 AND 4 THEN 'TRACE' WHEN {number} BETWEEN 5 AND 8 THEN 'DEBUG' "
        f"WHEN {number} BETWEEN 9 AND 12 THEN 'INFO' WHEN {number} BETWEEN 13 AND 16 THEN 'WARN' "
        f"WHEN {number} BETWEEN 17 AND 20 THEN 'ERROR' WHEN {number} BETWEEN 21 AND 24 THEN 'FATAL' END"
    )
    text = f"upper(trim({h.column('SeverityText', 'severity_text')}))"
    named = (
        f"CASE WHEN {text} IN ('WARNING', 'WRN') THEN 'WARN' WHEN {text} IN ('ERR', 'SEVERE') THEN 'ERROR' "
        f"WHEN {text} IN ('INFORMATION', 'INFORMATIONAL', 'INF', 'NOTICE') THEN 'INFO' "
        f"WHEN {text} IN ('CRITICAL', 'CRIT', 'PANIC', 'EMERGENCY', 'ALERT') THEN 'FATAL' ELSE nullif({text}, '') END"
    )
    namespace = h.attribute("k8s.namespace.name", *maps)
    return None, {
        "time": f"coalesce(instant({h.column('Timestamp')}), instant({h.column('TimestampTime')}))",
        "service": f"coalesce({h.column('ServiceName', 'service_name')}, {h.attribute('service.name', *maps)})",
        "severity": f"coalesce({named}, {by_number})",
        "severity_number": number,
        "body": h.column("Body"),
        "template": f"template({h.column('Body')})",
        "trace_id": h.column("TraceId", "trace_id"),
        "span_id": h.column("SpanId", "span_id"),
        "namespace": f"coalesce({h.column('k8s_namespace', 'namespace')}, {namespace})",
        "pod": f"coalesce({h.column('k8s_pod_name', 'pod')}, {h.attribute('k8s.pod.name', *maps)})",
        "deployment": h.attribute("k8s.deployment.name", *maps),
        "attributes": h.column("LogAttributes", "log_attributes"),
    }


def _spans(h: Header) -> tuple[Document | None, dict[str, str]]:
    # `Duration` is in nanoseconds in both layouts; some files have only `duration_ms`.
    whole = f"TRY_CAST(TRY_CAST({h.column('Duration')} AS DOUBLE) AS BIGINT)"
    scaled = f"TRY_CAST(TRY_CAST({h.column('duration_ms')} AS DOUBLE) * 1000000 AS BIGINT)"
    kind = f"replace(lower({h.column('SpanKind', 'span_kind')}), 'span_kind_', '')"
    status = f"replace(lower({h.column('StatusCode', 'status_code')}), 'status_code_', '')"
    maps = ("ResourceAttributes", "resource_attributes")
    trace, span = h.column("TraceId", "trace_id"), h.column("SpanId", "span_id")
    parent = h.column("ParentSpanId", "parent_span_id")
    return None, {
        "time": f"instant({h.column('Timestamp')})",
        "trace_id": trace,
        "span_id": span,
        "parent_id": parent,
        "name": h.column("SpanName", "span_name"),
        "kind": f"concat(upper({kind}[1]), {kind}[2:])",
        "service": h.column("ServiceName", "service_name"),
        "namespace": f"coalesce({h.attribute('k8s.namespace.name', *maps)}, {h.column('k8s_namespace')})",
        "pod": f"coalesce({h.attribute('k8s.pod.name', *maps)}, {h.column('k8s_pod_name')})",
        "duration_ns": f"coalesce({scaled}, {whole})",
        "status": f"concat(upper({status}[1]), {status}[2:])",
        "status_message": h.column("StatusMessage", "status_message"),
        "attributes": h.column("SpanAttributes", "span_attributes"),
        "event_names": h.column("Events.Name", "events_name"),
        "event_attributes": h.column("Events.Attributes", "events_attributes"),
        "trace_key": f"hash({trace})",
        "span_key": f"hash({trace}, {span})",
        "parent_key": f"CASE WHEN {parent} IS NOT NULL THEN hash({trace}, {parent}) END",
    }


def _metrics(h: Header) -> tuple[Document | None, dict[str, str]]:
    stem = r"regexp_extract(filename, '([^/\\]+?)(?:_raw)?\.tsv$', 1)"
    kind = f"lower(regexp_extract({stem}, '^([A-Za-z]+)_', 1))"
    tags = ("tags", "labels")
    # A recorder writes the rows of all metrics of a service below the header of the first: the column of buckets may
    # hold a status, and the other way round. Tags are right.
    bucket = f"ends_with({h.column('metric_name', 'metric')}, '_bucket')"
    status = f"CASE WHEN contains({h.column(*tags)}, 'status_code') THEN {h.attribute('status_code', *tags)} END"
    return None, {
        "object_kind": kind,
        "object_name": f"regexp_replace({stem}, '^[A-Za-z]+_', '')",
        "metric": h.column("metric_name", "metric"),
        "time": f"instant({h.column('timestamp', 'time')})",
        "value": f"TRY_CAST({h.column('value')} AS DOUBLE)",
        "namespace": f"coalesce({h.column('namespace')}, {h.attribute('namespace', *tags)})",
        "le": f"CASE WHEN {bucket} THEN coalesce({h.attribute('le', *tags)}, {h.column('bucket_le', 'le')}) END",
        "metric_type": h.column("metric_type"),
        "status_code": f"coalesce({status}, CASE WHEN NOT {bucket} THEN {h.column('status_code')} END)",
        "labels": h.column("tags", "labels"),
    }


_SOURCES: dict[str, Callable[[Header], tuple[Document | None, dict[str, str]]]] = {
    "events": _events,
    "objects": _objects,
    "logs": _logs,
    "spans": _spans,
    "metrics": _metrics,
}


def column_expressions(table: str, header: list[str]) -> dict[str, str]:
    """The SQL expression of each column of the table, over the rows of a file with this header."""
    return _SOURCES[table](Header(header))[1]


def selection(table: str, header: list[str], relation: str, resources: str | None = None) -> str:
    """The SELECT that converts rows of a file with this header to rows of the table."""
    columns_of = Header(header, resources is not None)
    document, expressions = _SOURCES[table](columns_of)
    columns = ", ".join(
        f"CAST({expressions[name]} AS {kind}) AS {identifier(name)}" for name, kind in SCHEMAS[table].items()
    )
    source = f"SELECT * FROM {relation}"
    if resources is not None:
        source += f" LEFT JOIN {resources} ON {columns_of.column(RESOURCES)} = {RESOURCE_MAP}"
    if document is not None:
        source = document.unwrapped(columns_of.column("Body"), source)
    return f"SELECT {columns} FROM ({source})"
