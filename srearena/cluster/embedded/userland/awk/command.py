"""awk as a command: its options, its files, its exit status."""

from __future__ import annotations

import re

from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.awk.lexer import AwkError, unescaped
from srearena.cluster.embedded.userland.awk.machine import Machine
from srearena.cluster.embedded.userland.awk.parser import Parser
from srearena.cluster.embedded.userland.awk.values import Input
from srearena.cluster.embedded.userland.tools.inputs import LineReader
from srearena.cluster.embedded.userland.tools.options import UsageError, parse

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)\Z", re.DOTALL)


async def run(process: Process, args: list[str]) -> int:
    options = parse(args, "", "Fvf", stop_early=True)
    name = "awk" if process.container.program.family.dialect == "busybox" else "mawk"
    if "f" in options:
        try:
            text = "\n".join(process.files.read_text(path) for path in options.all("f"))
        except OSError as error:
            await process.error(f"{name}: cannot open {options.value('f')} ({error.strerror})\n")
            return 2
    else:
        if not options.operands:
            raise UsageError("usage: awk [-F fs][-v var=value][prog | -f progfile][file ...]")
        text = options.operands.pop(0)
    try:
        machine = Machine(process, Parser(text).program(), process.env)
    except AwkError as error:
        await process.error(f"{name}: line 1: {error}\n")
        return 2
    if "F" in options:
        separator = unescaped(options.value("F"))
        machine.memory.variables["FS"] = "\t" if separator == "t" else separator
    for item in options.all("v"):
        found = _ASSIGNMENT.match(item)
        if found is None:
            await process.error(f"{name}: improper assignment: -v {item}\n")
            return 2
        machine.memory.variables[found.group(1)] = Input(unescaped(found.group(2)))
    machine.memory.arrays["ARGV"] = {str(i): Input(word) for i, word in enumerate(["awk", *options.operands])}
    machine.memory.variables["ARGC"] = float(len(options.operands) + 1)
    try:
        return await _run(process, machine, options.operands, name)
    except AwkError as error:
        await machine.outputs.flush()
        await process.error(f"{name}: {error}\n")
        return 2
    finally:
        machine.outputs.close()


async def _run(process: Process, machine: Machine, operands: list[str], name: str) -> int:
    going = await machine.begin()
    status = 0
    if going and any(rule.kind != "BEGIN" for rule in machine.rules):
        read_any = False
        for operand in operands:
            found = _ASSIGNMENT.match(operand)
            if found is not None and not process.files.exists(operand):
                machine.memory.variables[found.group(1)] = Input(unescaped(found.group(2)))
                continue
            read_any = True
            if going:
                outcome = await _read_file(process, machine, operand, name)
                status = 2 if outcome is None else status
                going = outcome is not False
        if not read_any:
            going = await _read_file(process, machine, "-", name) is not False
    await machine.end()
    await machine.outputs.flush()
    return machine.exit_status or status


async def _read_file(process: Process, machine: Machine, path: str, name: str) -> bool | None:
    """Feed one file; False where the program exited, None where the file could not be read."""
    try:
        file = process.fd(0).retain() if path == "-" else process.open(path, "r")
    except OSError as error:
        await machine.outputs.flush()
        await process.error(f"{name}: cannot open {path} ({error.strerror})\n")
        return None
    machine.memory.variables["FILENAME"] = "" if path == "-" else path
    machine.memory.variables["FNR"] = 0.0
    lines = LineReader(process, file)
    try:
        pending: list[str] = []
        while (raw := await lines.next()) is not None:
            line = raw.decode(errors="surrogateescape").removesuffix("\n")
            separator = str(machine.memory.variables["RS"])
            if separator == "\n":
                if not await machine.handle(line):
                    return False
                continue
            pending.append(line)
            if separator == "" and line == "":
                paragraph = "\n".join(pending).strip("\n")
                pending = []
                if paragraph and not await machine.handle(paragraph):
                    return False
        if pending:
            separator = str(machine.memory.variables["RS"])
            text = "\n".join(pending)
            records = [text.strip("\n")] if separator == "" else text.split(separator[0])
            for record in records:
                if not await machine.handle(record):
                    return False
    finally:
        file.release()
    return True
