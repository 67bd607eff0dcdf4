"""Userland families: the tools of an image, their paths, and the wording of their messages."""

from __future__ import annotations

from dataclasses import dataclass


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_CORE = _names("""
    basename base64 cat chgrp chmod chown chroot cp cut date dd df dirname du echo env expr false fold head hostname id
    install link ln ls md5sum mkdir mkfifo mktemp mv nice nl nohup nproc od paste printenv printf pwd readlink realpath
    rm rmdir seq sha1sum sha256sum shuf sleep sort stat stty sync tac tail tee test [ timeout touch tr true
    truncate tty uname uniq wc whoami yes
""")

_BUSYBOX = _CORE + _names("""
    arch arp arping ash awk busybox clear cmp diff dmesg egrep fallocate fgrep find free grep gunzip gzip hexdump
    ifconfig ip kill killall less logger lsof more mount nc netstat nsenter nslookup pgrep pidof ping pkill ps rev
    route sed sh strings sysctl tar telnet time top traceroute umount unlink uptime usleep watch wget which xargs xxd
    zcat
""")

_DEBIAN = _CORE + _names("""
    apt apt-get arch awk bash cmp dash diff dmesg egrep fallocate fgrep find getent gunzip gzip grep mawk more
    mount nsenter rev sed sh tar umount unlink which xargs zcat
""")


@dataclass(frozen=True, slots=True)
class Family:
    name: str
    tools: tuple[str, ...]
    dialect: str
    """The wording of the tools' messages: `busybox` or `gnu`."""
    shell: str = ""
    """Which shell /bin/sh is: `busybox`, `dash` or `bash`; empty where there is none."""
    release: str = ""
    """Content of /etc/os-release."""
    merged_usr: bool = False
    """/bin is a link to /usr/bin."""

    @property
    def has_shell(self) -> bool:
        return bool(self.shell)


def _release(name: str, identifier: str, version: str, pretty: str) -> str:
    return (
        f'PRETTY_NAME="{pretty}"\nNAME="{name}"\nVERSION_ID="{version}"\nID={identifier}\n'
        f'HOME_URL="https://www.{identifier}.org/"\n'
    )


FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family("scratch", (), "gnu"),
        Family(
            "distroless",
            (),
            "gnu",
            release=_release("Debian GNU/Linux", "debian", "12", "Distroless"),
            merged_usr=True,
        ),
        Family("busybox", _BUSYBOX, "busybox", "busybox"),
        Family(
            "alpine",
            (*_BUSYBOX, "getent", "apk"),
            "busybox",
            "busybox",
            _release("Alpine Linux", "alpine", "3.20.3", "Alpine Linux v3.20"),
        ),
        Family(
            "debian",
            _DEBIAN,
            "gnu",
            "dash",
            _release("Debian GNU/Linux", "debian", "12", "Debian GNU/Linux 12 (bookworm)"),
            True,
        ),
        Family(
            "ubuntu",
            (*_DEBIAN, "ps", "kill", "pgrep", "pkill", "top", "free", "uptime"),
            "gnu",
            "dash",
            _release("Ubuntu", "ubuntu", "24.04", "Ubuntu 24.04.1 LTS"),
            True,
        ),
    )
}

_TAG_WORDS = {
    "alpine": "alpine",
    "busybox": "busybox",
    "distroless": "distroless",
    "nonroot": "distroless",
    "debian": "debian",
    "bookworm": "debian",
    "bullseye": "debian",
    "slim": "debian",
    "jammy": "ubuntu",
    "noble": "ubuntu",
    "ubuntu": "ubuntu",
}


def family_named(base: str, tag: str = "") -> Family:
    """The family of an image: from its tag, or else its usual base."""
    wanted = next((family for word, family in _TAG_WORDS.items() if word in tag.lower()), base)
    return FAMILIES[wanted]
