"""sed as a command: its options, its files, editing in place."""

from __future__ import annotations

import re

from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.sed.editor import Editor
from srearena.cluster.embedded.userland.sed.script import Script, SedError
from srearena.cluster.embedded.userland.tools.inputs import LineReader, opened
from srearena.cluster.embedded.userland.tools.options import UsageError, parse
from srearena.cluster.embedded.userland.tools.wording import complain

_LONG = {
    "quiet": "n",
    "silent": "n",
    "expression=": "e",
    "file=": "f",
    "regexp-extended": "E",
    "in-place?=": "i",
    "null-data": "z",
    "separate": "s",
}


async def run(process: Process, args: list[str]) -> int:
    in_place = any(re.match(r"-[nErsz]*i", arg) for arg in args) or any(arg.startswith("--in-place") for arg in args)
    suffix = next((found.group(1) for arg in args if (found := re.match(r"-[nErsz]*i(.*)", arg))), "")
    words = [re.sub(r"^(-[nErsz]*)i.*$", r"\1", arg) if re.match(r"-[nErsz]*i", arg) else arg for arg in args]
    options = parse([word for word in words if word != "-"] if in_place else words, "nErsuz", "ef", long=_LONG)
    scripts = list(options.all("e"))
    for path in options.all("f"):
        try:
            scripts.append(process.files.read_text(path))
        except OSError as error:
            await process.error(f"sed: couldn't open file {path}: {error.strerror}\n")
            return 1
    if not scripts:
        if not options.operands:
            raise UsageError("no script specified")
        scripts.append(options.operands.pop(0))
    text = "\n".join(scripts)
    quiet = "n" in options or text.startswith("#n\n")
    extended = bool({"E", "r"} & options.flags)
    try:
        if in_place:
            return await _edit_in_place(process, text, extended, quiet, options.operands, suffix)
        editor = Editor(process, Script(text, extended).parse(), quiet)
        return await _edit(process, editor, options.operands or ["-"])
    except SedError as error:
        await process.error(f"sed: -e expression #1, char {max(1, len(text))}: {error}\n")
        return 1


async def _edit(process: Process, editor: Editor, paths: list[str]) -> int:
    status = 0
    files = []
    try:
        for path in paths:
            file = await opened(process, "sed", path)
            if file is None:
                status = 2 if process.container.program.family.dialect == "gnu" else 1
            else:
                files.append(file)
        await editor.start([LineReader(process, file) for file in files])
        while await editor.next_line():
            if not await editor.cycle():
                break
        await editor.flush()
    except IsADirectoryError:
        await process.error(f"sed: couldn't edit {paths[0]}: not a regular file\n")
        status = 4
    finally:
        for file in files:
            file.release()
    return status if editor.exit_status is None else editor.exit_status


async def _edit_in_place(
    process: Process, text: str, extended: bool, quiet: bool, paths: list[str], suffix: str
) -> int:
    status = 0
    for path in paths:
        editor = Editor(process, Script(text, extended).parse(), quiet, in_place=True)
        try:
            file = process.open(path, "r")
        except OSError as error:
            await complain(process, "sed", path, error)
            status = 1
            continue
        kept: list[str] = []
        try:
            await editor.start([LineReader(process, file)])
            while await editor.next_line():
                going = await editor.cycle()
                kept += editor.output
                editor.output = []
                if not going:
                    break
        finally:
            file.release()
        try:
            if suffix:
                process.files.write_bytes(path + suffix, process.files.read_bytes(path))
            process.files.write_bytes(path, "".join(kept).encode(errors="surrogateescape"))
        except OSError as error:
            await process.error(f"sed: couldn't open temporary file {path}: {error.strerror}\n")
            status = 4
    return status
