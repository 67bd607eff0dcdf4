"""Makes commands out of tokens, one complete command line at a time, as shells read their input.

That a script is read line by line shows: what precedes a syntax error has been run by then.
"""

from __future__ import annotations

import re

from srearena.cluster.embedded.userland.shell.dialect import Dialect
from srearena.cluster.embedded.userland.shell.lexer import MAX_NESTING, Lexer
from srearena.cluster.embedded.userland.shell.syntax import (
    NOTHING,
    AndOr,
    ArithmeticCommand,
    Assignment,
    Background,
    Case,
    CaseItem,
    Conditional,
    For,
    ForArithmetic,
    Function,
    Group,
    If,
    Literal,
    Loop,
    Node,
    Part,
    Pipeline,
    Redirect,
    Redirected,
    Sequence,
    Simple,
    Subshell,
    Word,
)
from srearena.cluster.embedded.userland.shell.tokens import Kind, ShellSyntaxError, Token

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_FUNCTION_NAME = re.compile(r"[^\s$`'\"\\|&;()<>{}=]+\Z")
_REDIRECTIONS = frozenset(("<", ">", ">>", "<<", "<<-", "<&", ">&", "<>", ">|", "&>", "&>>", "<<<"))
_RESERVED = frozenset(
    ("if", "then", "elif", "else", "fi", "while", "until", "do", "done", "for", "case", "esac", "{", "}", "!", "in")
)
_CLOSING = frozenset(("then", "elif", "else", "fi", "do", "done", "esac", "}"))


class Parser:
    """Reads commands from a text. `next_command` gives one complete line of them, None at the end."""

    def __init__(self, text: str, dialect: Dialect, *, line: int = 1) -> None:
        self.dialect = dialect
        self.lexer = Lexer(text, dialect, _parse_substitution, line=line)

    @classmethod
    def over(cls, lexer: Lexer) -> Parser:
        """A parser that goes on where the lexer is."""
        parser = cls.__new__(cls)
        parser.dialect = lexer.dialect
        parser.lexer = lexer
        return parser

    @property
    def at_end(self) -> bool:
        return self.lexer.at_end

    @property
    def awaits_document(self) -> bool:
        """The text ended inside a here-document: read more input if possible."""
        return self.lexer.awaits_document

    def next_command(self) -> Node | None:
        while self.lexer.peek().kind is Kind.NEWLINE:
            self.lexer.take()
        if self.lexer.peek().kind is Kind.END:
            return None
        node = self._list(stop_at_newline=True)
        token = self.lexer.peek()
        if token.kind not in (Kind.NEWLINE, Kind.END):
            raise self._unexpected(token)
        if token.kind is Kind.NEWLINE:
            self.lexer.take()
        return node

    # --- tokens ----------------------------------------------------------------------------------------------

    def _unexpected(self, token: Token, expecting: str = "") -> ShellSyntaxError:
        hint = f' (expecting "{expecting}")' if expecting and self.dialect.name != "bash" else ""
        if token.kind is Kind.END:
            return ShellSyntaxError(self.dialect.missing_end + hint, token.line, incomplete=True)
        shown = "newline" if token.kind is Kind.NEWLINE else token.text
        if token.kind is Kind.WORD and self.dialect.name == "dash" and shown not in _RESERVED:
            quoted = "word"
        elif self.dialect.name == "bash":
            quoted = f"`{shown}'"
        else:
            quoted = f'"{shown}"' if token.kind is not Kind.NEWLINE else "newline"
        return ShellSyntaxError(self.dialect.syntax.format(quoted) + hint, token.line)

    def _is_operator(self, *texts: str) -> bool:
        token = self.lexer.peek()
        return token.kind is Kind.OPERATOR and token.text in texts

    def _reserved(self) -> str:
        """The reserved word that comes next, if it is one."""
        token = self.lexer.peek()
        if token.kind is not Kind.WORD or token.word is None:
            return ""
        text = token.word.literal or ""
        if text in _RESERVED or (self.dialect.extended and text in ("[[", "function", "time")):
            return text
        return ""

    def _expect(self, word: str) -> None:
        if self._reserved() != word:
            raise self._unexpected(self.lexer.peek(), word)
        self.lexer.take()

    def _expect_operator(self, text: str) -> None:
        if not self._is_operator(text):
            raise self._unexpected(self.lexer.peek(), text)
        self.lexer.take()

    def _skip_newlines(self) -> None:
        while self.lexer.peek().kind is Kind.NEWLINE:
            self.lexer.take()

    # --- lists -----------------------------------------------------------------------------------------------

    def _list(self, *, stop_at_newline: bool = False) -> Node:
        """Commands separated by ; & and newlines, up to something that ends them."""
        self.lexer.depth += 1
        if self.lexer.depth > MAX_NESTING:
            raise self.lexer.error("syntax error: nested too deeply")
        try:
            items: list[Node] = []
            while True:
                if not stop_at_newline:
                    self._skip_newlines()
                if self._ends_list():
                    break
                node = self._and_or()
                if self._is_operator("&"):
                    self.lexer.take()
                    node = Background(node)
                    separated = True
                elif self._is_operator(";"):
                    self.lexer.take()
                    separated = True
                else:
                    separated = not stop_at_newline and self.lexer.peek().kind is Kind.NEWLINE
                items.append(node)
                if not separated:
                    break
            return items[0] if len(items) == 1 else Sequence(tuple(items))
        finally:
            self.lexer.depth -= 1

    def _ends_list(self) -> bool:
        token = self.lexer.peek()
        if token.kind in (Kind.END, Kind.NEWLINE):
            return True
        return self._is_operator(")", ";;", ";&") or self._reserved() in _CLOSING

    def _block(self) -> Node:
        """A list that must not be empty."""
        node = self._list()
        if node == NOTHING:
            raise self._unexpected(self.lexer.peek())
        return node

    def _and_or(self) -> Node:
        node = self._pipeline()
        while self._is_operator("&&", "||"):
            operator = self.lexer.take().text
            self._skip_newlines()
            node = AndOr(node, operator, self._pipeline())
        return node

    def _pipeline(self) -> Node:
        negated = timed = False
        while self._reserved() in ("!", "time"):
            if self.lexer.take().text == "!":
                negated = not negated
            else:
                timed = True
        commands = [self._command()]
        while self._is_operator("|"):
            self.lexer.take()
            self._skip_newlines()
            commands.append(self._command())
        if len(commands) == 1 and not negated and not timed:
            return commands[0]
        return Pipeline(tuple(commands), negated, timed)

    # --- commands --------------------------------------------------------------------------------------------

    def _command(self) -> Node:
        compound = self._compound()
        if compound is None:
            return self._simple()
        redirects: list[Redirect] = []
        while (redirect := self._redirect()) is not None:
            redirects.append(redirect)
        return Redirected(compound, tuple(redirects)) if redirects else compound

    def _compound(self) -> Node | None:
        if self._is_operator("("):
            return self._parenthesis()
        reserved = self._reserved()
        if not reserved or reserved in ("in", "!", "time"):
            return None
        if reserved in _CLOSING:
            raise self._unexpected(self.lexer.peek())
        token = self.lexer.take()
        match reserved:
            case "if":
                return self._if()
            case "while" | "until":
                condition = self._block()
                return Loop(condition, self._do_block(), reserved == "until")
            case "for":
                return self._for(token.line)
            case "case":
                return self._case()
            case "[[":
                return self._conditional(token.line)
            case "function":
                return self._function_keyword()
            case _:
                body = self._block()
                self._expect("}")
                return Group(body)

    def _parenthesis(self) -> Node:
        self.lexer.take()
        if self.dialect.braces and self.lexer.text.startswith("(", self.lexer.position):
            start, line = self.lexer.position, self.lexer.line
            self.lexer.position += 1
            word = self.lexer.read_arithmetic()
            if word is not None:
                return ArithmeticCommand(word)
            self.lexer.position, self.lexer.line = start, line
        body = self._block()
        self._expect_operator(")")
        return Subshell(body)

    def _if(self) -> Node:
        branches: list[tuple[Node, Node]] = []
        otherwise: Node | None = None
        while True:
            condition = self._block()
            self._expect("then")
            branches.append((condition, self._block()))
            reserved = self._reserved()
            if reserved == "elif":
                self.lexer.take()
                continue
            if reserved == "else":
                self.lexer.take()
                otherwise = self._block()
            self._expect("fi")
            return If(tuple(branches), otherwise)

    def _do_block(self) -> Node:
        self._expect("do")
        body = self._block()
        self._expect("done")
        return body

    def _for(self, line: int) -> Node:
        if self.dialect.braces and self._is_operator("("):
            return self._for_arithmetic()
        token = self.lexer.take()
        if token.kind is not Kind.WORD or not _NAME.match(token.text):
            if self.dialect.name == "dash" and token.kind is not Kind.END:
                raise ShellSyntaxError("Syntax error: Bad for loop variable", token.line)
            raise self._unexpected(token)
        self._skip_newlines()
        words: list[Word] | None = None
        if self._reserved() == "in":
            self.lexer.take()
            words = []
            while self.lexer.peek().kind is Kind.WORD:
                word = self.lexer.take().word
                assert word is not None
                words.append(word)
            if not self._is_operator(";") and self.lexer.peek().kind is not Kind.NEWLINE:
                raise self._unexpected(self.lexer.peek())
        if self._is_operator(";"):
            self.lexer.take()
        self._skip_newlines()
        return For(token.text, None if words is None else tuple(words), self._do_block(), line)

    def _for_arithmetic(self) -> Node:
        self.lexer.take()
        if not self.lexer.text.startswith("(", self.lexer.position):
            raise self._unexpected(self.lexer.peek())
        self.lexer.position += 1
        word = self.lexer.read_arithmetic()
        sections = [] if word is None else _split_sections(word)
        if len(sections) != 3:
            raise self.lexer.error("syntax error: arithmetic expression required")
        if self._is_operator(";"):
            self.lexer.take()
        self._skip_newlines()
        return ForArithmetic(sections[0], sections[1], sections[2], self._do_block())

    def _case(self) -> Node:
        subject = self._word()
        self._skip_newlines()
        self._expect("in")
        items: list[CaseItem] = []
        while True:
            self._skip_newlines()
            if self._reserved() == "esac":
                self.lexer.take()
                return Case(subject, tuple(items))
            if self._is_operator("("):
                self.lexer.take()
            patterns = [self._word()]
            while self._is_operator("|"):
                self.lexer.take()
                patterns.append(self._word())
            self._expect_operator(")")
            body = self._list()
            falls_through = self._is_operator(";&")
            items.append(CaseItem(tuple(patterns), body, falls_through))
            if self._is_operator(";;", ";&"):
                self.lexer.take()
            elif self._reserved() != "esac":
                raise self._unexpected(self.lexer.peek(), ";;")

    def _word(self) -> Word:
        token = self.lexer.take()
        if token.kind is not Kind.WORD or token.word is None:
            raise self._unexpected(token)
        return token.word

    def _conditional(self, line: int) -> Node:
        """`[[ ... ]]`; its operators may be words or operator tokens."""
        words: list[Word] = []
        while True:
            token = self.lexer.take()
            if token.kind is Kind.WORD and token.word is not None:
                if token.word.literal == "]]":
                    return Conditional(tuple(words), line)
                words.append(token.word)
                if token.word.literal == "=~":
                    self.lexer.skip_blanks()
                    words.append(self.lexer.read_word(frozenset(" \t\n")))
            elif token.kind is Kind.OPERATOR and token.text in ("&&", "||", "(", ")", "<", ">"):
                words.append(Word((Literal(token.text),)))
            elif token.kind is not Kind.NEWLINE:
                raise self._unexpected(token)

    def _function_keyword(self) -> Node:
        token = self.lexer.take()
        if token.kind is not Kind.WORD:
            raise self._unexpected(token)
        if self._is_operator("("):
            self.lexer.take()
            self._expect_operator(")")
        return self._function_body(token.text)

    def _function_body(self, name: str) -> Node:
        self._skip_newlines()
        body = self._command()
        return Function(name, body)

    def _simple(self) -> Node:
        assignments: list[Assignment] = []
        words: list[Word] = []
        redirects: list[Redirect] = []
        line = self.lexer.peek().line
        while True:
            redirect = self._redirect()
            if redirect is not None:
                redirects.append(redirect)
                continue
            token = self.lexer.peek()
            if token.kind is not Kind.WORD or token.word is None:
                break
            self.lexer.take()
            assignment = _assignment(token.word) if not words else None
            if assignment is not None:
                assignments.append(assignment)
                continue
            if not words and not assignments and not redirects and self._is_operator("("):
                return self._function_parentheses(token)
            words.append(token.word)
        if not (assignments or words or redirects):
            raise self._unexpected(self.lexer.peek())
        return Simple(tuple(assignments), tuple(words), tuple(redirects), line)

    def _function_parentheses(self, token: Token) -> Node:
        open_ = self.lexer.peek()
        if not _FUNCTION_NAME.match(token.text):
            raise self._unexpected(open_)
        self.lexer.take()
        self._expect_operator(")")
        return self._function_body(token.text)

    def _redirect(self) -> Redirect | None:
        token = self.lexer.peek()
        descriptor: int | None = None
        if token.kind is Kind.DESCRIPTOR:
            descriptor = int(self.lexer.take().text)
            token = self.lexer.peek()
        if token.kind is not Kind.OPERATOR or token.text not in _REDIRECTIONS:
            return None
        operator = self.lexer.take().text
        target = self._word()
        redirect = Redirect(operator, descriptor, target)
        if operator in ("<<", "<<-"):
            quoted = any(not isinstance(part, Literal) or part.quoted for part in target.parts)
            self.lexer.expect_document(redirect, _plain_text(target), strip_tabs=operator == "<<-", quoted=quoted)
        return redirect


def _parse_substitution(lexer: Lexer) -> Node:
    """The commands of `$(...)`: everything up to the closing parenthesis, which is taken too."""
    parser = Parser.over(lexer)
    node = parser._list()
    parser._expect_operator(")")
    return node


def _assignment(word: Word) -> Assignment | None:
    first = word.parts[0] if word.parts else None
    if not isinstance(first, Literal) or first.quoted:
        return None
    match = _ASSIGNMENT.match(first.text)
    if match is None:
        return None
    rest = first.text[match.end() :]
    parts: tuple[Part, ...] = (Literal(rest), *word.parts[1:]) if rest else word.parts[1:]
    return Assignment(match.group(1), Word(parts), bool(match.group(2)))


def _plain_text(word: Word) -> str:
    """A here-document's delimiter: quotes removed, nothing expanded."""
    texts: list[str] = []
    for part in word.parts:
        if isinstance(part, Literal):
            texts.append(part.text)
        elif hasattr(part, "parts"):
            texts.append(_plain_text(Word(part.parts)))
        elif hasattr(part, "name"):
            texts.append("$" + part.name)
    return "".join(texts)


def _split_sections(word: Word) -> list[Word]:
    """The three parts of `for ((a; b; c))`."""
    sections: list[list[Part]] = [[]]
    for part in word.parts:
        if isinstance(part, Literal):
            first, *others = part.text.split(";")
            sections[-1].append(Literal(first, True))
            sections.extend([Literal(other, True)] for other in others)
        else:
            sections[-1].append(part)
    return [Word(tuple(section)) for section in sections]
