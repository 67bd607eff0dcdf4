"""Laws of reading shell text: it always ends, with a program or with a syntax error."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from srearena.cluster.embedded.userland.shell.dialect import BASH, BUSYBOX, DASH, Dialect
from srearena.cluster.embedded.userland.shell.parser import Parser
from srearena.cluster.embedded.userland.shell.syntax import Node
from srearena.cluster.embedded.userland.shell.tokens import ShellSyntaxError

DIALECTS = st.sampled_from((DASH, BUSYBOX, BASH))
PIECES = st.sampled_from(
    [
        *(
            "a",
            "x=1",
            "$x",
            "${x:-",
            "}",
            "${#x}",
            "$((",
            "))",
            "$(",
            ")",
            "`",
            "'",
            '"',
            "\\",
            "\n",
            ";",
            "&",
            "&&",
            "||",
        ),
        *("|", "<", ">", ">>", "<<E", "E\n", "<<-'E'\n", "2>&1", "&>", "<<<", "if ", "then ", "fi ", "while ", "do "),
        *(
            "done ",
            "for i in ",
            "case x in ",
            "esac ",
            "a) ",
            ";;",
            "{ ",
            "} ",
            "( ",
            "f() ",
            "! ",
            "[[ ",
            " ]]",
            "#",
            "~",
        ),
        *(
            "{a,b}",
            "{1..3}",
            "*",
            "?",
            "[a",
            "]",
            "$'",
            "$@",
            "$*",
            "-",
            "=",
            "+",
            " ",
            "\t",
            "function ",
            "time ",
            "in ",
        ),
        *("<(", ">(", "((", "\x00", "é", "\ud800"),
    ]
)


def programs_of(text: str, dialect: Dialect) -> list[Node]:
    parser = Parser(text, dialect)
    nodes: list[Node] = []
    while (node := parser.next_command()) is not None:
        nodes.append(node)
        assert len(nodes) <= len(text) + 1
    return nodes


@settings(max_examples=600, deadline=None)
@given(st.lists(PIECES, max_size=40), DIALECTS)
def test_any_pile_of_shell_pieces_is_a_program_or_a_syntax_error(pieces: list[str], dialect: Dialect) -> None:
    try:
        programs_of("".join(pieces), dialect)
    except ShellSyntaxError as error:
        assert error.message


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=200), DIALECTS)
def test_any_text_is_a_program_or_a_syntax_error(text: str, dialect: Dialect) -> None:
    try:
        programs_of(text, dialect)
    except ShellSyntaxError as error:
        assert error.line >= 1


@given(st.sampled_from(["(", "$(", "${x:-", '"$(', "{ ", "if ", "`", "$((", "case x in (a) "]), st.integers(100, 3000))
@settings(max_examples=40, deadline=None)
def test_deep_nesting_is_refused_instead_of_exhausting_the_stack(piece: str, count: int) -> None:
    try:
        programs_of(piece * count, BASH)
    except ShellSyntaxError as error:
        assert error.message


@given(st.lists(st.text("abcxyz0123456789_./-", min_size=1, max_size=8), min_size=1, max_size=6))
def test_plain_words_come_out_as_they_went_in(words: list[str]) -> None:
    (node,) = programs_of("echo " + " ".join(words), DASH)
    assert [word.literal for word in node.words] == ["echo", *words]  # type: ignore[union-attr]
