"""nginx configuration: directives and blocks, with the files and lines they came from."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland import glob_patterns

MAX_FILES = 200
MAX_DEPTH = 20
MAX_SHARED = 64


class NginxConfigError(Exception):
    """What `nginx -t` says after [emerg]."""


@dataclass(slots=True)
class Directive:
    name: str
    arguments: list[str]
    place: str
    """file:line"""
    children: list[Directive] = field(default_factory=list)

    def all(self, name: str) -> Iterator[Directive]:
        return (child for child in self.children if child.name == name)

    def first(self, name: str) -> Directive | None:
        return next(self.all(name), None)

    def value(self, name: str, default: str = "") -> str:
        found = self.first(name)
        return " ".join(found.arguments) if found is not None else default


_TOKEN = re.compile(
    r"""\s*(?:#[^\n]*|([{};])|"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|((?:\$\{|\\.|[^\s{};"'#\\])(?:\$\{[^}]*\}|\\.|[^\s{};])*))"""
)

KNOWN = frozenset(
    """
    absolute_redirect accept_mutex access_log add_after_body add_before_body add_header aio alias allow auth_basic
    auth_basic_user_file auth_request autoindex break charset client_body_buffer_size client_body_temp_path
    client_body_timeout client_header_buffer_size client_header_timeout client_max_body_size daemon default
    default_type deny directio env error_log error_page etag events expires fastcgi_buffers fastcgi_index fastcgi_param
    fastcgi_pass fastcgi_read_timeout fastcgi_split_path_info fastcgi_temp_path geo grpc_pass gunzip gzip
    gzip_buffers gzip_comp_level gzip_disable gzip_http_version gzip_min_length gzip_proxied gzip_static gzip_types
    gzip_vary hash hostnames http http2 if ignore_invalid_headers include index internal ip_hash keepalive
    keepalive_requests keepalive_timeout large_client_header_buffers least_conn limit_conn limit_conn_zone
    limit_except limit_rate limit_req limit_req_zone listen load_module location log_format log_not_found
    lua_package_path map map_hash_bucket_size map_hash_max_size master_process merge_slashes multi_accept
    opentracing opentracing_load_tracer opentracing_propagate_context opentracing_tag opentracing_trace_locations
    open_file_cache otel_exporter otel_service_name otel_trace otel_trace_context pcre_jit perl perl_set pid
    port_in_redirect proxy_buffer_size proxy_buffering proxy_buffers proxy_busy_buffers_size proxy_cache
    proxy_cache_bypass proxy_cache_key proxy_cache_path proxy_cache_use_stale proxy_cache_valid
    proxy_connect_timeout proxy_hide_header proxy_http_version proxy_ignore_headers proxy_intercept_errors
    proxy_next_upstream proxy_next_upstream_timeout proxy_next_upstream_tries proxy_pass proxy_pass_request_headers
    proxy_pass_header proxy_read_timeout proxy_redirect proxy_request_buffering proxy_send_timeout proxy_set_header
    proxy_ssl_verify proxy_ssl_name proxy_ssl_server_name proxy_temp_path random real_ip_header real_ip_recursive
    resolver resolver_timeout return rewrite rewrite_log root satisfy scgi_pass scgi_temp_path send_timeout sendfile
    server server_name server_name_in_redirect server_names_hash_bucket_size server_names_hash_max_size server_tokens
    set set_real_ip_from ssi ssl ssl_certificate ssl_certificate_key ssl_ciphers ssl_dhparam
    ssl_prefer_server_ciphers ssl_protocols ssl_session_cache ssl_session_tickets ssl_session_timeout split_clients
    stream stub_status sub_filter sub_filter_once sub_filter_types tcp_nodelay tcp_nopush thread_pool try_files types
    types_hash_bucket_size types_hash_max_size underscores_in_headers upstream use user uwsgi_param uwsgi_pass
    uwsgi_temp_path worker_connections worker_cpu_affinity worker_priority worker_processes worker_rlimit_nofile
    worker_shutdown_timeout working_directory zone
    """.split()
)
_FREE_BLOCKS = frozenset(("map", "types", "geo", "split_clients", "events"))
"""Blocks whose lines are not directives."""


@dataclass(slots=True)
class _Known:
    """A configuration, and everything that was read for it."""

    tree: Directive
    texts: list[tuple[str, str]]
    listings: list[tuple[str, list[str]]]


_known: list[_Known] = []
"""The latest last."""


class ConfigReader:
    def __init__(self, process: Process) -> None:
        self.process = process
        self._texts: list[tuple[str, str]] = []
        self._listings: list[tuple[str, list[str]]] = []

    def read(self, path: str) -> Directive:
        """The whole configuration; replicas that read the same files share one immutable tree."""
        for known in reversed(_known):
            if known.texts[0][0] == path and self._finds(known):
                return known.tree
        root = Directive("", [], path)
        root.children = self._file(path, 0)
        _known.append(_Known(root, self._texts, self._listings))
        del _known[:-MAX_SHARED]
        return root

    def _finds(self, known: _Known) -> bool:
        """Whether reading everything anew would find the same."""
        files = self.process.files
        try:
            same = all(files.read_text(path) == text for path, text in known.texts)
            return same and all(self._names(folder) == names for folder, names in known.listings)
        except OSError:
            return False

    def _names(self, folder: str) -> list[str]:
        files = self.process.files
        return files.listdir(folder) if files.is_dir(folder) else []

    def _text(self, path: str, place: str) -> str:
        if len(self._texts) >= MAX_FILES:
            raise NginxConfigError(f"too many included files in {place}")
        try:
            text = self.process.files.read_text(path)
        except OSError as error:
            where = f" in {place}" if place else ""
            raise NginxConfigError(f'open() "{path}" failed ({error.errno}: {error.strerror}){where}') from None
        self._texts.append((path, text))
        return text

    def _file(self, path: str, depth: int, place: str = "") -> list[Directive]:
        text = self._text(path, place)
        tokens = list(_tokens(text, path))
        directives, rest = self._block(tokens, 0, path, depth, nested=False, free=False)
        if rest < len(tokens):
            raise NginxConfigError(f'unexpected "}}" in {path}:{tokens[rest][1]}')
        return directives

    def _block(
        self, tokens: list[tuple[str, int, bool]], index: int, path: str, depth: int, *, nested: bool, free: bool
    ) -> tuple[list[Directive], int]:
        if depth > MAX_DEPTH:
            raise NginxConfigError(f"blocks nested too deeply in {path}")
        result: list[Directive] = []
        words: list[tuple[str, int]] = []
        while index < len(tokens):
            token, line, quoted = tokens[index]
            index += 1
            if quoted or token not in ("{", "}", ";"):
                words.append((token, line))
                continue
            if token == "}":
                if words:
                    raise NginxConfigError(f'unexpected "}}" in {path}:{line}')
                return (result, index) if nested else (result, index - 1)
            if not words:
                raise NginxConfigError(f'unexpected "{token}" in {path}:{line}')
            directive = Directive(words[0][0], [word for word, _ in words[1:]], f"{path}:{words[0][1]}")
            words = []
            if not free and directive.name not in KNOWN:
                raise NginxConfigError(f'unknown directive "{directive.name}" in {directive.place}')
            if token == "{":
                inner_free = directive.name in _FREE_BLOCKS - {"events"}
                directive.children, index = self._block(tokens, index, path, depth + 1, nested=True, free=inner_free)
            if directive.name == "include" and not free:
                result += self._include(directive, depth)
            else:
                result.append(directive)
        if words:
            raise NginxConfigError(f'unexpected end of file, expecting ";" or "}}" in {path}:{words[-1][1]}')
        if nested:
            raise NginxConfigError(f'unexpected end of file, expecting "}}" in {path}:{tokens[-1][1] if tokens else 1}')
        return result, index

    def _include(self, directive: Directive, depth: int) -> list[Directive]:
        pattern = directive.arguments[0] if directive.arguments else ""
        if not pattern.startswith("/"):
            pattern = posixpath.join("/etc/nginx", pattern)
        if glob_patterns.has_magic(pattern):
            folder, _, name = pattern.rpartition("/")
            matcher = glob_patterns.compiled(name)
            names = self._names(folder)
            self._listings.append((folder, names))
            paths = [
                posixpath.join(folder, entry) for entry in names if matcher.matches(entry) and not entry.startswith(".")
            ]
        else:
            paths = [pattern]
        result: list[Directive] = []
        for path in paths:
            result += self._file(path, depth + 1, directive.place)
        return result


def _tokens(text: str, path: str) -> Iterator[tuple[str, int, bool]]:
    position = 0
    line = 1
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            rest = text[position:]
            if not rest.strip():
                return
            raise NginxConfigError(
                f'unexpected end of file, expecting ";" or "}}" in {path}:{line + rest.count(chr(10))}'
            )
        lead = text[position : found.end()]
        mark, double, single, plain = found.groups()
        started = line + text[position : found.start(found.lastindex)].count("\n") if found.lastindex else line
        line += lead.count("\n")
        position = found.end()
        if mark is not None:
            yield mark, started, False
        elif double is not None or single is not None:
            yield _unquoted(double if double is not None else single), started, True
        elif plain is not None:
            yield plain, started, False


def _unquoted(text: str) -> str:
    letters = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "'": "'", "\\": "\\"}
    return re.sub(r"\\(.)", lambda found: letters.get(found.group(1), found.group(0)), text)
