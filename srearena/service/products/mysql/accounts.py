"""SQL commands for accounts, privileges and databases: patterns with functions that return the affected rows."""

from __future__ import annotations

import re
from collections.abc import Callable

from srearena.cluster.program_models.sql import literal
from srearena.service.products.mysql.errors import MysqlError
from srearena.service.products.mysql.server import SYSTEM, Account, MysqlServer, Session

Command = Callable[[MysqlServer, Session, re.Match[str]], int]
_WHO = r"['\"`]?([\w.-]*)['\"`]?(?:@['\"`]?([\w.%-]+)['\"`]?)?"
_PASSWORD = re.compile(
    r"(?:IDENTIFIED\s+(?:WITH\s+\S+\s+)?BY\s+|=\s*(?:PASSWORD\s*\(\s*)?)(['\"][^'\"]*['\"])", re.IGNORECASE
)


def _administer(server: MysqlServer, session: Session) -> None:
    account = session.account
    if account is None or not (account.superuser or account.may("CREATE USER", "*", "*")):
        text = "Access denied; you need (at least one of) the CREATE USER privilege(s) for this operation"
        raise MysqlError(1227, "42000", text)


def _find(server: MysqlServer, name: str, host: str | None) -> Account | None:
    return next((a for a in server.accounts if a.name == name and a.host == (host or "%")), None)


def _create_user(server: MysqlServer, session: Session, match: re.Match[str]) -> int:
    _administer(server, session)
    absent, name, host, options = match.groups()
    if _find(server, name, host) is not None:
        if absent:
            return 0
        raise MysqlError(1396, "HY000", f"Operation CREATE USER failed for '{name}'@'{host or '%'}'")
    password = _PASSWORD.search(options)
    server.accounts.append(Account(name, host or "%", literal(password.group(1)) if password else ""))
    return 0


def _alter_user(server: MysqlServer, session: Session, match: re.Match[str]) -> int:
    name, host, options = match.groups()
    if name.upper() == "USER":
        name, host = session.user, session.account.host if session.account else "%"
    if name != session.user:
        _administer(server, session)
    account = _find(server, name, host)
    password = _PASSWORD.search(options)
    if account is None:
        raise MysqlError(1396, "HY000", f"Operation ALTER USER failed for '{name}'@'{host or '%'}'")
    if password is not None:
        account.password = literal(password.group(1))
    return 0


def _drop_user(server: MysqlServer, session: Session, match: re.Match[str]) -> int:
    _administer(server, session)
    exists, name, host = match.groups()
    account = _find(server, name, host)
    if account is None and not exists:
        raise MysqlError(1396, "HY000", f"Operation DROP USER failed for '{name}'@'{host or '%'}'")
    if account is not None:
        server.accounts.remove(account)
    return 0


def _grant(server: MysqlServer, session: Session, match: re.Match[str]) -> int:
    word, privileges, place, _, name, host = match.groups()
    _administer(server, session)
    account = _find(server, name, host)
    if account is None and word.upper() == "GRANT" and server.version.startswith("5."):
        account = Account(name, host or "%", "")
        server.accounts.append(account)
    if account is None:
        text = (
            "You are not allowed to create a user with GRANT"
            if word.upper() == "GRANT"
            else "There is no such grant defined"
        )
        raise MysqlError(1410, "42000", text)
    place = place.replace("`", "").strip()
    place = place if "." in place else f"{session.database}.{place}"
    words = {part.strip().upper() for part in privileges.split(",")}
    names = {"ALL"} if words & {"ALL", "ALL PRIVILEGES"} else words
    granted = account.granted.setdefault(place, set())
    if word.upper() == "GRANT":
        granted |= names
        password = _PASSWORD.search(match.string)
        if password is not None:
            account.password = literal(password.group(1))
    elif "ALL" in names:
        granted.clear()
    else:
        if "ALL" in granted:
            granted.remove("ALL")
            granted |= {"SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "ALTER", "INDEX", "LOCK TABLES"}
        granted -= names
    return 0


def _check_database(session: Session, privilege: str, name: str) -> None:
    account = session.account
    if account is None or not account.may(privilege, name, "*"):
        raise MysqlError(
            1044, "42000", f"Access denied for user '{session.user}'@'{session.host}' to database '{name}'"
        )


def _create_database(server: MysqlServer, session: Session, match: re.Match[str]) -> int:
    absent, name = match.group(1), match.group(2)
    _check_database(session, "CREATE", name)
    if name in (*server.databases, *SYSTEM):
        if absent:
            return 1
        raise MysqlError(1007, "HY000", f"Can't create database '{name}'; database exists")
    server.create_database(name)
    return 1


def _drop_database(server: MysqlServer, session: Session, match: re.Match[str]) -> int:
    exists, name = match.group(1), match.group(2)
    _check_database(session, "DROP", name)
    if name not in server.databases:
        if exists:
            return 0
        raise MysqlError(1008, "HY000", f"Can't drop database '{name}'; database doesn't exist")
    count = len(server.tables.tables(name))
    server.tables.drop_schema(name)
    return count


ACCOUNT_COMMANDS: tuple[tuple[str, Command], ...] = (
    (rf"CREATE\s+USER\s+(IF\s+NOT\s+EXISTS\s+)?{_WHO}(.*)$", _create_user),
    (rf"ALTER\s+USER\s+{_WHO}(.*)$", _alter_user),
    (rf"SET\s+PASSWORD\s+FOR\s+{_WHO}(.*)$", _alter_user),
    (rf"DROP\s+USER\s+(IF\s+EXISTS\s+)?{_WHO}", _drop_user),
    (rf"(GRANT|REVOKE)\s+(.+?)\s+ON\s+(\S+)\s+(TO|FROM)\s+{_WHO}", _grant),
    (r"CREATE\s+(?:DATABASE|SCHEMA)\s+(IF\s+NOT\s+EXISTS\s+)?`?([\w-]+)`?", _create_database),
    (r"DROP\s+(?:DATABASE|SCHEMA)\s+(IF\s+EXISTS\s+)?`?([\w-]+)`?", _drop_database),
)
