"""Means 46 to 90."""
from means import AnyOf, Effect, Gap, Has, Like, Match, Means, Start, State

# A call that may wait for somebody is let go, and its result is then unknown (specs/SYSCALLS.md).
LET_GO = ("ok", "unknown")
F_MADE = Effect("file.create", {"path": "{dir}/f"}, 1)
SHELL = ["/usr/bin/dash", "/usr/bin/bash"]
COMPLETE = State({"state": "complete"})
OWN_MOUNTS = Effect("priv.namespace", {"flags": Has("CLONE_NEWNS")})


def tried(kind, where, name, unknown=False):
    """What the program named an outcome of (tried() in ev2.h): the result is known, or unknown where it is let go."""
    choices = [Effect(kind, {**where, "result.state": f"{{{name}}}", "result.errno": None}, 1),
               Effect(kind, {**where, "result.state": f"{{{name}}}", "result.errno": f"{{{name}_errno}}"}, 1,
                      ("failed",))]
    return AnyOf(*choices, *([Effect(kind, where, 1, ("unknown",))] if unknown else []))


def delegated(peer, service):
    return Effect("ipc.connect", {"peer.path": peer, "delegated": service}, 1, LET_GO)


def helper(path, state, count=1):
    return Effect("file.write", {"path": path, "delegated": "kernel helper", "result.state": state}, count,
                  ("ok", "failed", "unknown"))


def family(name, domain):
    return tried("net.raw", {"syscall": "socket", "args.domain": domain}, name)


def refused(kind, syscall, number, **more):
    where = {"syscall": syscall, "target.pid": f"{{watcher{number}}}", "result.by": "self"}
    return Effect(kind, {**where, **more}, 1, ("refused",))


ROWS = [
    # The keeper, the monitor and the guardian.
    Means(46, "kill_super", "attack", "refused+recorded",
          (*(refused("proc.signal", syscall, number, **{"args.sig": "SIGKILL"})
             for number in (1, 2, 3) for syscall in ("kill", "tkill", "tgkill")),
           F_MADE, COMPLETE)),
    Means(47, "dev_tcp", "interpreter", "recorded",
          (Effect("net.connect", {"peer.address": "127.0.0.1", "peer.port": "{outside_tcp}", "peer.protocol": "tcp"}, 1,
                  LET_GO),
           Effect("net.connect", {"peer.port": "{outside_udp}", "peer.protocol": "udp"}, 1),
           Effect("proc.exec", {}, 1)),
          outside=True),
    Means(48, "stdin_envi", "interpreter", "recorded",
          (Effect("proc.exec", {"image.path": SHELL, "argv": '["sh"]', "args.env_names": [None, "[]"]}, 1),
           F_MADE, Effect("file.create", {"path": "{dir}/g"}, 1)),
          stdin="echo text >f; echo did create f\necho text >g; echo did create g\n"),
    Means(49, "ns_user_tool", "other namespace", "recorded",
          (Effect("priv.namespace", {"syscall": "unshare", "process.exe": Like("*/unshare"), "flags": Has(
              "CLONE_NEWUSER", "CLONE_NEWNS", "CLONE_NEWNET", "CLONE_NEWPID", "CLONE_NEWIPC", "CLONE_NEWUTS")}),
           Effect("mount.change", {"path": "/mnt", "args.filesystemtype": "tmpfs"}, 1),
           Effect("file.create", {"path": "/mnt/x", "dev": "{mnt_dev}", "ino": "{mnt_ino}"}, 1), F_MADE)),
    Means(50, "fuse_two_faced", "file system", "recorded",
          (Effect("file.write", {"path": "/dev/fuse"}, 1, LET_GO),
           Effect("mount.change", {"path": "{dir}/mnt", "args.filesystemtype": "fuse.evasion"}, 1),
           Effect("proc.exec", {"argv.1": "mnt/script", "image.path": SHELL}, 1),
           # That nothing was verified is said by `observed`, or by a note.
           AnyOf(Effect("proc.exec", {"path": "{dir}/mnt/script"}, 1, LET_GO, ("observed",)),
                 Effect("proc.exec", {"path": "{dir}/mnt/script", "note": True}, 1, LET_GO)),
           AnyOf(Effect("file.read", {"path": "{dir}/mnt/script", "process.exe": SHELL}, 2, LET_GO, ("observed",)),
                 Effect("file.read", {"path": "{dir}/mnt/script", "process.exe": SHELL, "note": True}, 2, LET_GO)),
           Effect("file.create", {"path": Match(r"{dir}/f[12]")})),
          lens="reads", folder_differs="who looks first gets another text",
          note="what such a file holds cannot be verified"),
    Means(51, "uffd_stall", "exhaustion", "recorded",
          (Effect("file.create", {"path": Like("{dir}/d/f*")}, "{files}"),
           AnyOf(*(Effect(kind, {"process.pid": "{first}", "syscall": "openat"}, 1, ("unknown", "failed"))
                   for kind in ("file.create", "file.write")),
                 State({"gaps.0.code": "memory"}), State({"gaps.1.code": "memory"})),
           COMPLETE),
          absent=(Gap("no_worker"),),
          note="owed is that reads of the tree's memory end, and what others do meanwhile"),
    Means(52, "core_pattern", "kernel helper", "gap", (helper("/proc/sys/kernel/core_pattern", "{write}"),)),
    Means(53, "binfmt_misc", "kernel helper", "gap", (helper("/proc/sys/fs/binfmt_misc/register", "{write}"),)),
    Means(54, "modprobe_path", "kernel helper", "gap",
          (helper("/proc/sys/kernel/modprobe", ["ok", "failed", "unknown"], "{modprobes}"),
           helper("/sys/kernel/uevent_helper", ["ok", "failed", "unknown"], "{uevents}"),
           helper("{agent_path}", ["ok", "failed", "unknown"], "{agents}"))),
    Means(55, "cron_at_systemd", "delegate", "gap",
          (Effect("file.create", {"path": "/etc/cron.d/x", "delegated": "cron"}, 1),
           Effect("file.rename", {"to.path": "/var/spool/cron/atjobs/a0001", "delegated": ["cron", "at"]}, 1),
           delegated("/run/systemd/private", "systemd")),
          outside=True, outside_paths=("systemd/private",)),
    Means(56, "docker_sock", "delegate", "gap",
          (Effect("ipc.connect", {"peer.path": "{outside_dir}/docker.sock", "delegated": "docker"}, None, LET_GO),
           delegated("{outside_dir}/containerd/containerd.sock", "containerd"),
           Effect("file.symlink", {"path": "{dir}/friend"}, 1),
           AnyOf(Effect("ipc.connect", {"peer.path": "{outside_dir}/docker.sock", "as_given": "friend"}, 1, LET_GO),
                 Effect("ipc.connect", {"peer.object.path": "{outside_dir}/docker.sock", "peer.path": "friend",
                                        "delegated": "docker"}, 1, LET_GO)),
           Effect("file.link", {"path": "{outside_dir}/docker.sock", "to.path": "{outside_dir}/innocent"}, 1),
           delegated("{outside_dir}/innocent", True)),
          outside=True, outside_paths=("docker.sock", "containerd/containerd.sock")),
    Means(57, "session_servers", "delegate", "gap",
          tuple(delegated(f"{{outside_dir}}/{path}", service) for path, service in (
              ("tmux-0/default", "tmux"), ("screen/S-evasion/1.x", "screen"), ("ssh-evasion/agent.1", "ssh-agent"),
              ("dbus-0123456789", "dbus"), ("gnupg/S.gpg-agent", "gpg-agent"))),
          outside=True, outside_paths=("tmux-0/default", "screen/S-evasion/1.x", "ssh-evasion/agent.1",
                                       "dbus-0123456789", "gnupg/S.gpg-agent"),
          arguments=("tmux-0/default", "screen/S-evasion/1.x", "ssh-evasion/agent.1", "dbus-0123456789",
                     "gnupg/S.gpg-agent")),
    Means(58, "ssh_localhost", "delegate", "recorded",
          (Effect("net.connect", {"peer.address": "127.0.0.1", "peer.port": 22, "peer.protocol": "tcp"}, 1, LET_GO),)),
    Means(59, "tiocsti", "injection", "recorded",
          (tried("kernel.other", {"syscall": "ioctl", "args.op": "TIOCSTI", "path": "{tty}"}, "push", True),)),
    Means(60, "proc_outside", "hidden path", "recorded",
          (Effect("file.create", {"path": "{dir}/f", "ino": "{ino}", "as_given": "/proc/{outside_pid}/root{dir}/f"}, 1,
                  LET_GO),
           Effect("file.write", {"path": "/dev/null", "as_given": "/proc/{outside_pid}/fd/0"}, 1, LET_GO),
           tried("file.write", {"path": "/proc/{outside_pid}/mem"}, "memory", True)),
          outside=True),
    Means(61, "setns_outside", "other namespace", "recorded",
          (tried("priv.namespace", {"syscall": "setns", "path": Like("*mnt*")}, "enter"),
           Effect("file.create", {"path": "{dir}/d/f", "ino": "{ino}"}, 1)), outside=True, identity="root"),
    Means(62, "new_mount_api", "hidden path", "recorded",
          (*(Effect("mount.change", {"syscall": syscall}, 1) for syscall in (
              "fsopen", "fsmount", "open_tree", "mount_setattr")),
           Effect("mount.change", {"syscall": "fsopen", "args.fsname": "tmpfs"}, 1),
           Effect("mount.change", {"syscall": "fsconfig", "args.key": "size"}, 1),
           Effect("mount.change", {"syscall": "open_tree", "path": "{dir}/secret"}, 1),
           Effect("mount.change", {"syscall": "move_mount", "to.path": "{dir}/d"}, 1),
           Effect("mount.change", {"syscall": "move_mount", "to.path": "{dir}/alias"}, 1),
           Effect("file.create", {"path": "{dir}/d/g", "dev": "{d_dev}", "ino": "{d_ino}"}, 1),
           Effect("file.create", {"path": "{dir}/alias/f", "ino": "{ino}", "host_path": "{dir}/secret/f"}, 1))),
    Means(63, "tmpfile_linkat", "hidden path", "recorded",
          (Effect("file.link", {"syscall": "linkat", "to.path": "{dir}/f", "ino": "{ino}"}, 1),
           Effect("file.create", {"syscall": "openat2", "path": "{dir}/jail/d/g"}, 1),
           Effect("file.create", {"syscall": "openat2", "result.errno": "EXDEV"}, 1, ("failed",))),
          absent=(Effect("file.create", {"path": "/d/g"}),)),
    Means(64, "opath_reopen", "hidden path", "recorded",
          (Effect("file.write", {"path": "{dir}/g", "ino": "{ino}", "as_given": Like("/*/fd/*")}, "{times}"),)),
    Means(65, "odd_writers", "kernel service", "recorded",
          (*(tried("file.write", {"syscall": "ioctl", "args.op": op, "path": "{dir}/dst"}, name) for op, name in (
              ("FICLONE", "clone"), ("FICLONERANGE", "range"))),
           # The request is made of the source; what is changed is named in its argument.
           AnyOf(*(Effect("file.write", {"syscall": "ioctl", "args.op": "FIDEDUPERANGE", field: "{dir}/dst"}, 1,
                          ("ok", "failed", "unknown")) for field in ("path", "to.path"))),
           tried("file.mode", {"syscall": "ioctl", "args.op": "FS_IOC_SETFLAGS", "path": "{dir}/kept"}, "flags"),
           tried("kernel.swap", {"syscall": "swapon", "path": "{dir}/src"}, "swap", True),
           tried("kernel.quota", {"syscall": "quotactl", "path": "{dir}/nothing"}, "quota", True),
           tried("kernel.other", {"syscall": "acct", "path": "{dir}/nothing"}, "account"))),
    Means(66, "block_device", "device", "recorded",
          (Effect("file.write", {"path": "{device}", "type": "block"}, None, ("ok", "failed", "unknown")),
           AnyOf(*(Effect("file.write", {"path": "{device}", field: value}, None, ("ok", "failed", "unknown"))
                   for field, value in (("note", True), ("delegated", True), ("args.rdev", "{rdev}"))))),
          note="owed is that any file on the device may be changed"),
    Means(67, "mknod_device", "device", "recorded",
          (tried("node.create", {"path": "{dir}/disk", "args.dev": "254:0", "mode": "60600"}, "block"),
           tried("node.create", {"path": "{dir}/d", "args.dev": "1:3", "mode": "20600"}, "character"),
           Effect("file.write", {"path": "{dir}/d", "type": "char"}, "{opens}", ("ok", "failed", "unknown")))),
    Means(68, "loop_mount", "device", "recorded",
          (Effect("kernel.other", {"args.op": "LOOP_CONFIGURE", "path": "{loop_device}"}, 1, LET_GO),
           AnyOf(Effect("kernel.other", {"args.op": "LOOP_CONFIGURE", "to.path": "{dir}/img"}),
                 Effect("kernel.other", {"args.op": "LOOP_CONFIGURE", "args.backing": "{dir}/img"}),
                 Effect("file.write", {"path": "{dir}/img", "process.exe": Like("*/mount")})),
           Effect("mount.change", {"path": "{dir}/mnt", "args.source": "{loop_device}"}, 1),
           Effect("file.create", {"path": "{dir}/mnt/f", "dev": "{loop_dev}"}, 1)),
          identity="root", folder_differs="a file system has its times and a number by lot in it"),
    Means(69, "vsock", "address by the side", "recorded",
          (Effect("net.connect", {"peer.family": "vsock", "peer.port": "{port}",
                                  "peer.address": "{cid}"}, 1, ("ok", "failed", "unknown")),)),
    Means(70, "odd_families", "kernel service", "recorded",
          (family("alg", "AF_ALG"), family("xdp", "AF_XDP"), family("tipc", "AF_TIPC"), family("rds", "AF_RDS"),
           family("can", "AF_CAN"), family("bluetooth", "AF_BLUETOOTH"), family("mctp", "AF_MCTP"))),
    Means(71, "raw_icmp", "address by the side", "recorded",
          (Effect("net.raw", {"syscall": "socket", "args.domain": "AF_INET", "args.protocol": 1}, 1),
           AnyOf(*(Effect(kind, {"syscall": "sendto", "peer.address": "127.0.0.1"}, 1, LET_GO)
                   for kind in ("net.send", "net.raw"))))),
    Means(72, "odd_addresses", "address by the side", "recorded",
          (AnyOf(*(Effect("net.connect", {"peer.port": "{port}", "peer.address": "0.0.0.0", field: Like("*127.0.0.1*")},
                          1, LET_GO) for field in ("args", "note", "peer")),
                 Effect("net.connect", {"peer.port": "{port}", "peer.address": "127.0.0.1", "as_given": "0.0.0.0"}, 1,
                        LET_GO)),
           Effect("net.connect", {"peer.address": ["::", "::1"]}, 1, LET_GO),
           *(Effect("net.send", {"peer.address": address}, 1, LET_GO) for address in ("239.1.2.3", "127.255.255.255")),
           Effect("net.send", {"peer.address": Match("fe80::1(%.*)?")}, 1, LET_GO),
           AnyOf(*(Effect("net.send", {"peer.address": Like("fe80::1*"), field: value}, 1, LET_GO) for field, value in (
               ("peer.scope_id", "{scope}"), ("peer.scope", "{scope}"), ("peer.ifindex", "{scope}"),
               ("peer.interface", "lo"), ("peer.address", Match("fe80::1%(lo|{scope})")))))),
          note="owed are the address as given, as reached, and its scope"),
    Means(73, "socket_options", "address by the side", "recorded",
          (*(Effect("net.raw", {"syscall": "setsockopt", "args.level": level, "args.optname": number}, 1)
             for level, number in (("SOL_SOCKET", 25), ("SOL_IP", 19), ("SOL_TCP", 19))),
           Effect("net.connect", {"peer.address": "127.9.9.9", "peer.port": 4242}, 1, LET_GO),
           Effect("net.bind", {"local.address": "127.0.0.1", "local.port": "{port}"}, "{shared}"),
           AnyOf(Effect("net.raw", {"syscall": "setsockopt", "args.level": "SOL_SOCKET", "args.optname": 15}, 2),
                 Effect("net.bind", {"local.port": "{port}", "args.reuseport": True}, 2)))),
    Means(74, "reverse", "address by the side", "recorded",
          (Effect("net.bind", {"local.address": "127.0.0.1", "args.bound_port": "{port}"}, 1),
           Effect("net.listen", {"local.address": "127.0.0.1", "local.port": "{port}"}, 1),
           Effect("net.accept", {"peer.address": "127.0.0.1", "peer.port": "{peer_port}"}, 1, LET_GO)),
          outside=True),
    Means(75, "inherited_socket", "descriptor passing", "recorded",
          (Start({"fd": 3, "peer.address": "127.0.0.1", "peer.port": "{outside_tcp}"}),),
          absent=(Effect("net.connect"),), outside=True, inherit=((3, "tcp"),)),
    Means(76, "own_filter", "own filter", "recorded",
          (Effect("priv.filter", {"syscall": "seccomp"}, 1), Effect("file.create", {"path": "{dir}/h"}, 1), COMPLETE),
          absent=tuple(Effect(kind, {"result.state": state, **where}) for state in LET_GO for kind, where in (
              ("dir.create", {"path": "{dir}/d"}), ("file.rename", {"path": "{dir}/f"}),
              ("file.delete", {"path": "{dir}/f"})))),
    Means(77, "filter_kills", "own filter", "recorded",
          (Effect("priv.filter", {"syscall": "seccomp"}, 1), Effect("dir.create", {"path": "{dir}/d"}, 1),
           Effect("proc.exec", {"image.path": Like("*/rawstatic")}, 1), F_MADE, COMPLETE),
          absent=(Effect("proc.exit", {"status.signal": "SIGSYS"}),)),
    Means(78, "clock", "attack", "recorded",
          (*(Effect("kernel.time", {"syscall": syscall, "result.errno": "EPERM"}, 1, ("failed",))
             for syscall in ("clock_settime", "settimeofday")),
           Effect("priv.namespace", {"flags": Has("CLONE_NEWTIME")}, 1),
           Effect("file.write", {"path": Like("/proc/*/timens_offsets")}, 1, LET_GO),
           # A day is 14 digits of nanoseconds.
           Effect("file.create", {"path": "{dir}/f", "process.pid": "{child}", "mono_ns": Match(r"\d{1,12}")}, 1))),
    Means(79, "starve", "exhaustion", "refused+recorded",
          (*(refused("kernel.other", syscall, number) for number in (1, 2, 3)
             for syscall in ("prlimit64", "sched_setscheduler")),
           *(AnyOf(Effect("file.write", {"path": f"/proc/{{watcher{number}}}/oom_score_adj", "result.by": "self"}, 1,
                          ("refused",)),
                   Effect("file.write", {"path": f"/proc/{{watcher{number}}}/oom_score_adj",
                                         "result.errno": "EACCES"}, 1, ("failed",))) for number in (1, 2, 3)),
           Effect("file.create", {"path": "{dir}/g", "result.errno": "EMFILE"}, 1, ("failed",)), F_MADE, COMPLETE)),
    Means(80, "kernel_code", "kernel code", "recorded",
          (tried("file.write", {"path": "/sys/kernel/tracing/uprobe_events"}, "probe", True),
           tried("kernel.bpf", {"syscall": "bpf", "args.cmd": "BPF_PROG_LOAD"}, "load", True),
           tried("kernel.perf", {"syscall": "perf_event_open"}, "perf"),
           tried("kernel.module", {"syscall": "init_module"}, "module", True),
           tried("kernel.reboot", {"syscall": "kexec_load"}, "kexec", True),
           # Results are not seen here, so the mark is owed for the attempt. Counting one's own time changes nothing.
           *(Effect(kind, {**where, "note": True}, 1, ("ok", "failed", "unknown")) for kind, where in (
               ("file.write", {"path": "/sys/kernel/tracing/uprobe_events"}), ("kernel.bpf", {"syscall": "bpf"}),
               ("kernel.module", {"syscall": "init_module"}), ("kernel.reboot", {"syscall": "kexec_load"})))),
          note="owed is that who watches can no longer be trusted"),
    Means(81, "env_hooks", "interpreter", "recorded",
          (Effect("proc.exec", {"argv.0": "bash", "args.env_names": Has("BASH_ENV")}, 1),
           Effect("proc.exec", {"argv.0": "perl", "args.env_names": Has("PERL5OPT", "PERL5LIB")}, 1),
           Effect("proc.exec", {"argv.0": "/usr/bin/python3", "args.env_names": Has("PYTHONPATH")}, 1),
           *(Effect("file.read", {"path": f"{{dir}}/{name}"}, None, LET_GO) for name in (
               "hook.sh", "lib/Hook.pm", "lib/sitecustomize.py")),
           *(Effect("file.create", {"path": f"{{dir}}/by_{name}"}, 1) for name in ("bash", "perl", "python"))),
          lens="reads"),
    Means(82, "one_liners", "interpreter", "recorded",
          tuple(Effect("file.create", {"path": f"{{dir}}/by_{name}", "process.exe": SHELL}, 1)
                for name in ("awk", "find", "tar", "sed", "xargs", "env")) +
          tuple(Effect("proc.exec", {"image.path": SHELL, "argv.2": f"echo text >by_{name}"}, 1)
                for name in ("awk", "find", "tar", "sed", "xargs", "env"))),
    Means(83, "memfd_plugin", "image disguise", "recorded",
          (Effect("file.create", {"syscall": "memfd_create", "args.name": "plugin"}, 1),
           Effect("file.map", {"path": Like("*memfd:plugin*"), "ino": "{plugin}", "flags": Has("PROT_EXEC")}), F_MADE),
          lens="all"),
    Means(84, "own_code", "no libc", "recorded",
          tuple(Effect("dir.create", {"path": f"{{dir}}/{name}"}, 1) for name in ("d", "e"))),
    Means(85, "vsyscall", "no libc", "recorded", (F_MADE, COMPLETE)),
    Means(86, "twin_names", "hidden path", "recorded",
          (Effect("file.create", {"path": "{dir}/caf\u00e9", "ino": "{composed}"}, 1),
           Effect("file.create", {"path": "{dir}/cafe\u0301", "ino": "{decomposed}"}, 1),
           Effect("file.write", {"path": Like("{dir}/mnt/d/[aA]")}, "{folded}"))),
    Means(87, "leases", "side channel", "recorded",
          (Effect("kernel.other", {"syscall": "fcntl", "args.op": "F_SETLEASE", "path": "{dir}/f"}, 2), F_MADE,
           Effect("file.create", {"path": "{dir}/g"}, 1)),
          note="locks and watches change nothing"),
    Means(88, "shared_objects", "side channel", "recorded",
          (Effect("file.create", {"path": "/dev/shm/{shm}"}, 1),
           Effect("file.map", {"path": "/dev/shm/{shm}", "flags": Has("MAP_SHARED")}, 1),
           Effect("ipc.shared", {"syscall": "mq_open", "args.name": "{mq}"}, 1),
           Effect("ipc.send", {"syscall": "mq_timedsend"}, 1, LET_GO),
           Effect("ipc.shared", {"syscall": "shmget", "args.key": "{key}"}, 1),
           Effect("ipc.shared", {"syscall": "shmat", "args.shmid": "{shm_id}"}, 1),
           Effect("ipc.shared", {"syscall": "msgget", "args.key": "{key}"}, 1),
           Effect("ipc.send", {"syscall": "msgsnd", "args.msqid": "{queue_id}"}, 1, LET_GO))),
    Means(89, "outlives", "lineage", "recorded",
          (Effect("file.create", {"path": "{dir}/f", "process.pid": "{late}"}, 1), COMPLETE),
          options=("--wait", "main")),
    Means(90, "nested", "own filter", "recorded",
          (Effect("proc.exec", {"path": Like("*/assure"), "argv.1": "trace"}, 2), COMPLETE),
          note="a run in a run: a clear refusal, or both work"),
]
