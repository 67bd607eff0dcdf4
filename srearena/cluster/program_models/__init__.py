"""The interface for program models: what the images of applications do on a simulated machine.

Application packages import from here and register their programs with `program` or `per_cluster`; the embedded cluster
finds them through the entry-point group `srearena.programs` (docs/embedded-cluster.md). Nothing else of
`srearena.cluster.embedded` is meant for them, so the simulator can change behind these names.
"""

from srearena.cluster.embedded.clock import Clock, Timer
from srearena.cluster.embedded.machine.exporter import Exporter, Sample
from srearena.cluster.embedded.machine.files.file_view import Glance
from srearena.cluster.embedded.machine.files.streams import Change
from srearena.cluster.embedded.machine.images.catalogue import register_image_table
from srearena.cluster.embedded.machine.images.image_names import ImageReference
from srearena.cluster.embedded.machine.networking.reachability import ConnectResult, Outcome
from srearena.cluster.embedded.machine.networking.sockets import (
    Connection,
    GrpcHealth,
    HttpRequest,
    HttpResponse,
    Listener,
)
from srearena.cluster.embedded.machine.processes.accounts import Account
from srearena.cluster.embedded.machine.processes.execution import ExecError, Exit
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.base import PATH, Program
from srearena.cluster.embedded.programs.generic import GenericServer, serve_declared_ports
from srearena.cluster.embedded.programs.log_lines import write_now
from srearena.cluster.embedded.programs.registry import Programs, per_cluster, program, program_for
from srearena.cluster.embedded.programs.root_filesystem import Folder
from srearena.cluster.embedded.programs.serving import Flags, go_bind_error, stop_signal, until_stopped
from srearena.cluster.embedded.programs.timestamps import klog_line, stamp
from srearena.cluster.embedded.userland.tools.urls import REASONS

__all__ = [
    "PATH",
    "REASONS",
    "Account",
    "Change",
    "Clock",
    "ConnectResult",
    "Connection",
    "ExecError",
    "Exit",
    "Exporter",
    "Flags",
    "Folder",
    "GenericServer",
    "Glance",
    "GrpcHealth",
    "HttpRequest",
    "HttpResponse",
    "ImageReference",
    "Listener",
    "Outcome",
    "Process",
    "Program",
    "Programs",
    "Sample",
    "Timer",
    "go_bind_error",
    "klog_line",
    "per_cluster",
    "program",
    "program_for",
    "register_image_table",
    "serve_declared_ports",
    "stamp",
    "stop_signal",
    "until_stopped",
    "write_now",
]
