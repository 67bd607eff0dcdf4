"""Corefiles: the effect of each plugin on replies, and the errors of CoreDNS on broken files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srearena.cluster.embedded.network.dns.corefile import DEFAULT_COREFILE, CorefileError, load, syntax_digest
from srearena.cluster.embedded.network.dns.directives import ORDER
from srearena.cluster.embedded.network.dns.messages import Question, Reply
from srearena.cluster.embedded.network.links import Scope
from tests.network.bench import Bench

FILES = {
    "/etc/resolv.conf": "nameserver 172.18.0.1\n",
    "/etc/coredns/db.corp": "$ORIGIN corp.example.\n@ IN SOA a b 1 2 3 4 5\nwww 60 IN A 10.1.1.1\nalias IN CNAME www\n",
}


def served(block: str) -> Bench:
    return Bench(corefile=f".:53 {{\n{block}\n}}")


def ask(bench: Bench, name: str, kind: str = "A") -> Reply:
    return bench.coredns["coredns"].answer(53, Question(name, kind), "10.244.1.200")


def values(reply: Reply) -> list[str]:
    return [record.value for record in reply.records]


KUBERNETES = "kubernetes cluster.local in-addr.arpa {\n fallthrough in-addr.arpa\n ttl 30\n}\n"


# Plugins


def test_a_template_can_deny_every_name_of_the_cluster() -> None:
    stanza = 'template ANY ANY svc.cluster.local {\n match ".*\\.svc\\.cluster\\.local\\.?$"\n rcode NXDOMAIN\n}\n'
    bench = served(stanza + KUBERNETES)
    bench.service("web", pods=[])
    assert ask(bench, "web.default.svc.cluster.local.").rcode == "NXDOMAIN"
    bench.coredns["coredns"].configuration = load(f".:53 {{\n{KUBERNETES}\n}}")
    assert ask(bench, "web.default.svc.cluster.local.").rcode == "NOERROR"


def test_a_template_generates_replies_from_groups() -> None:
    block = (
        "template IN A example {\n"
        '  match "^ip-(?P<a>[0-9]+)-([0-9]+)\\.example\\.$"\n'
        '  answer "{{ .Name }} 60 IN A 10.0.{{ .Group.a }}.{{ index .Match 2 }}"\n'
        "  fallthrough\n"
        "}\n"
        "hosts {\n 1.1.1.1 other.example\n fallthrough\n}\n"
    )
    bench = served(block)
    reply = ask(bench, "ip-3-4.example.")
    assert values(reply) == ["10.0.3.4"]
    assert reply.records[0].ttl == 60
    assert values(ask(bench, "other.example.")) == ["1.1.1.1"]
    assert ask(bench, "ip-3-4.example.", "AAAA").rcode == "SERVFAIL"


def test_hosts_serve_inline_entries_and_fall_through_when_configured() -> None:
    closed = served("hosts {\n 10.0.0.1 db.example.com db\n}\n" + KUBERNETES)
    assert values(ask(closed, "db.example.com.")) == ["10.0.0.1"]
    assert ask(closed, "web.default.svc.cluster.local.").rcode == "SERVFAIL"
    opened = served("hosts {\n 10.0.0.1 db.example.com\n fallthrough\n}\n" + KUBERNETES)
    opened.service("web", pods=[])
    assert ask(opened, "web.default.svc.cluster.local.").rcode == "NOERROR"
    assert values(ask(opened, "1.0.0.10.in-addr.arpa.", "PTR")) == ["db.example.com."]


@pytest.mark.parametrize(
    ("rule", "name", "found"),
    [
        ("rewrite name exact old.example. web.default.svc.cluster.local.", "old.example.", True),
        ("rewrite name old.example web.default.svc.cluster.local", "old.example.", True),
        ("rewrite name suffix .corp. .default.svc.cluster.local.", "web.corp.", True),
        ("rewrite name prefix old- web", "old-.default.svc.cluster.local.", True),
        ("rewrite name substring shop default", "web.shop.svc.cluster.local.", True),
        ("rewrite name regex (.*)\\.corp {1}.default.svc.cluster.local answer auto", "web.corp.", True),
        ("rewrite name exact old.example. web.default.svc.cluster.local.", "other.example.", False),
        ("rewrite stop name exact a. b.\n rewrite name exact b. web.default.svc.cluster.local.", "a.", False),
        ("rewrite continue name exact a. b.\n rewrite name exact b. web.default.svc.cluster.local.", "a.", True),
    ],
)
def test_rewrite_rules_change_the_question(rule: str, name: str, found: bool) -> None:
    bench = served(f"{rule}\n{KUBERNETES}")
    service = bench.service("web", pods=[])
    reply = ask(bench, name)
    assert (values(reply) == [service["spec"]["clusterIP"]]) == found


def test_a_rewritten_answer_keeps_the_asked_name_only_where_the_rule_says_so() -> None:
    target = "web.default.svc.cluster.local."
    turned_back = served(f"rewrite name suffix .corp. .default.svc.cluster.local.\n{KUBERNETES}")
    turned_back.service("web", pods=[])
    assert ask(turned_back, "web.corp.").records[0].name == "web.corp."
    left = served(f"rewrite name regex (.*)\\.corp {{1}}.default.svc.cluster.local\n{KUBERNETES}")
    left.service("web", pods=[])
    assert ask(left, "web.corp.").records[0].name == target
    client = left.pod("client", ports=())
    assert not left.run(left.facade(client).resolve("web.corp.")).addresses, "a C library believes only matching names"


def test_a_zone_file_answers_for_its_zone() -> None:
    bench = Bench(corefile=DEFAULT_COREFILE)
    bench.coredns["coredns"].configuration = load(
        ".:53 {\n file db.corp corp.example\n}", read=lambda path: FILES.get(f"/etc/coredns/{path}")
    )
    assert values(ask(bench, "www.corp.example.")) == ["10.1.1.1"]
    assert values(ask(bench, "alias.corp.example.")) == ["www.corp.example.", "10.1.1.1"]
    assert ask(bench, "nobody.corp.example.").rcode == "NXDOMAIN"


def test_server_blocks_answer_for_their_zones_and_refuse_the_rest() -> None:
    bench = Bench(
        corefile=f"cluster.local:53 {{\n{KUBERNETES}}}\nexample.com {{\n hosts {{\n 10.0.0.9 www.example.com\n }}\n}}"
    )
    assert values(ask(bench, "www.example.com.")) == ["10.0.0.9"]
    assert ask(bench, "google.com.").rcode == "REFUSED"
    assert ask(bench, "default.svc.cluster.local.").rcode == "NOERROR"


def test_forward_queries_upstream_and_reports_a_dead_one() -> None:
    lines: list[str] = []
    bench = served("errors\nforward . 8.8.8.8")
    bench.coredns["coredns"]._log = lines.append
    assert values(ask(bench, "example.com.")) == ["93.184.215.14"]
    assert ask(bench, "no-such-name.example.").rcode == "NXDOMAIN"
    bench.network.links.partition(Scope.of(ranges=["8.8.8.8/32"]))
    first = ask(bench, "example.com.")
    assert first.rcode == "SERVFAIL"
    assert first.seconds == 6
    assert lines[-1].startswith("[ERROR] plugin/errors: 2 example.com. A: read udp 10.244.1.2:")
    assert lines[-1].endswith("->8.8.8.8:53: i/o timeout")
    assert ask(bench, "example.com.").seconds == 2, "a server known to be down is tried once"


def test_forward_to_an_unassigned_address_fails_external_lookups_only() -> None:
    bench = served(f"{KUBERNETES}\nforward . 192.0.2.53")
    web, client = bench.pod("web"), bench.pod("client", ports=())
    bench.service("web", pods=[web])
    assert bench.reach(client, "web").ok
    outside = bench.reach(client, "example.com", 443)
    assert outside.resolution.status.value == "SERVFAIL"
    assert outside.seconds > 2


def test_the_cache_keeps_a_denial_for_its_time() -> None:
    bench = served(f"{KUBERNETES}\ncache 30")
    name = "late.default.svc.cluster.local."
    assert ask(bench, name).rcode == "NXDOMAIN"
    bench.service("late", pods=[])
    assert ask(bench, name).rcode == "NXDOMAIN"
    bench.clock.advance(31)
    assert ask(bench, name).rcode == "NOERROR"


def test_the_cache_keeps_an_old_address_for_its_time_and_counts_its_ttl_down() -> None:
    bench = served(f"{KUBERNETES}\ncache 20")
    name = "web.default.svc.cluster.local."
    bench.service("web", pods=[], ip="10.96.7.7")
    assert values(ask(bench, name)) == ["10.96.7.7"]
    bench.service("web", pods=[], ip="10.96.8.8")
    bench.clock.advance(12)
    reply = ask(bench, name)
    assert values(reply) == ["10.96.7.7"]
    assert reply.records[0].ttl == 18
    bench.clock.advance(9)
    assert values(ask(bench, name)) == ["10.96.8.8"]


def test_kubeadms_corefile_does_not_cache_the_cluster() -> None:
    bench = Bench()
    name = "late.default.svc.cluster.local."
    assert ask(bench, name).rcode == "NXDOMAIN"
    bench.service("late", pods=[])
    assert ask(bench, name).rcode == "NOERROR"


def test_forecasts_end_with_the_cached_answer_they_stand_on() -> None:
    bench = served(f"{KUBERNETES}\ncache 30")
    web, client = bench.pod("web"), bench.pod("client", ports=())
    host = bench.host(client)
    assert not bench.network.forecast(host, "late", 80).paths
    bench.service("late", pods=[web])
    assert not bench.network.forecast(host, "late", 80).paths
    bench.clock.advance(31)
    assert bench.network.forecast(host, "late", 80).paths


# What a broken file says


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            ".:53 {\n  errors\n  kubernetess cluster.local\n}",
            "/etc/coredns/Corefile:3 - Error during parsing: Unknown directive 'kubernetess'",
        ),
        (
            ".:53 {\n  errors\n  cache 30\n",
            "/etc/coredns/Corefile:3 - Syntax error: Unexpected token '30', expecting '}'",
        ),
        (
            ".:53 {\n  kubernetes cluster.local {\n    podz insecure\n  }\n}",
            "plugin/kubernetes: /etc/coredns/Corefile:3 - Error during parsing: unknown property 'podz'",
        ),
        (
            ".:53 {\n  forward .\n}",
            "plugin/forward: /etc/coredns/Corefile:2 - Error during parsing: "
            "Wrong argument count or unexpected line ending after '.'",
        ),
        (".:53 {\n  forward . nonsense\n}", 'plugin/forward: not an IP address or file: "nonsense"'),
        (".:53 {\n  hosts {\n", "/etc/coredns/Corefile:2 - Error during parsing: Unexpected EOF"),
        (".:53 {\n  errors\n}\n.:53 {\n  errors\n}", "cannot serve dns://.:53 - it is already defined"),
        (
            '.:53 {\n  template IN A {\n    match "("\n    rcode NXDOMAIN\n  }\n}',
            "plugin/template: "
            "/etc/coredns/Corefile:3 - Error during parsing: could not compile regex error parsing regexp: "
            "missing closing ): `(`",
        ),
    ],
)
def test_a_broken_corefile_is_explained_in_coredns_words(text: str, message: str) -> None:
    with pytest.raises(CorefileError) as caught:
        load(text, read=FILES.get)
    assert str(caught.value) == message


def test_comments_and_blanks_do_not_make_another_corefile() -> None:
    other = DEFAULT_COREFILE.replace("errors", "errors # log them").replace("    ", "\t")
    assert syntax_digest(other) == syntax_digest(DEFAULT_COREFILE)
    assert syntax_digest(DEFAULT_COREFILE.replace("ttl 30", "ttl 31")) != syntax_digest(DEFAULT_COREFILE)


words = st.sampled_from(
    [*ORDER, ".", ".:53", "{", "}", "cluster.local", "30", "-1", "/etc/resolv.conf", "8.8.8.8", '"', "#x", "import",
     "fallthrough", "ttl", "pods", "insecure", "match", ".*", "(", "answer", "{{ .Name }}", "name", "exact", "regex",
     "auto", "stop", "rcode", "NXDOMAIN", "IN", "A", "(snippet)", ",", "a,", "1s", "success", "disable", "\\"]
)  # fmt: skip
texts = st.lists(st.one_of(words, st.just("\n"), st.text(max_size=4)), max_size=40).map(" ".join)


@given(texts)
def test_any_text_loads_or_is_refused_and_what_loads_answers(text: str) -> None:
    try:
        configuration = load(text, read=FILES.get)
    except CorefileError as error:
        assert str(error)
        return
    bench = _BENCH
    server = bench.coredns["coredns"]
    server.configuration = configuration
    for kind in ("A", "PTR", "SRV"):
        reply = server.answer(53, Question("web.default.svc.cluster.local.", kind), "10.0.0.1")
        assert reply.rcode


_BENCH = Bench()
