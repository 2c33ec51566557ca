"""What strace saw of a run, in the words in which recorded effects are compared with it (effects.py)."""

import os
import re
from typing import NamedTuple

# Call: what it does, and where its paths are. f: a descriptor; p: a path; d: a directory's descriptor and a path; t: a
# text that stays as it is.
FILE_CALLS = {
    "rename": ("rename", "pp"), "renameat": ("rename", "dd"), "renameat2": ("rename", "dd"),
    "link": ("link", "pp"), "linkat": ("link", "dd"), "symlink": ("symlink", "tp"), "symlinkat": ("symlink", "td"),
    "unlink": ("delete", "p"), "unlinkat": ("delete", "d"), "rmdir": ("rmdir", "p"),
    "mkdir": ("mkdir", "p"), "mkdirat": ("mkdir", "d"), "mknod": ("mknod", "p"), "mknodat": ("mknod", "d"),
    "chmod": ("chmod", "p"), "fchmod": ("chmod", "f"), "fchmodat": ("chmod", "d"), "fchmodat2": ("chmod", "d"),
    "chown": ("chown", "p"), "lchown": ("chown", "p"), "fchown": ("chown", "f"), "fchownat": ("chown", "d"),
    "utime": ("times", "p"), "utimes": ("times", "p"), "futimesat": ("times", "d"), "utimensat": ("times", "d"),
    "truncate": ("truncate", "p"), "ftruncate": ("truncate", "f"), "fallocate": ("truncate", "f"),
    "setxattr": ("xattr", "p"), "lsetxattr": ("xattr", "p"), "fsetxattr": ("xattr", "f"),
    "removexattr": ("xattr", "p"), "lremovexattr": ("xattr", "p"), "fremovexattr": ("xattr", "f"),
}
OPENS = {"open": "p", "openat": "d", "openat2": "d", "creat": "p"}
FOLLOWED = ("chmod", "chown", "times", "truncate", "xattr")
HAVE_MODE = {"mkdir": 1, "mkdirat": 2, "chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2}
SIGNALS = {"kill": 1, "tkill": 1, "tgkill": 2, "pidfd_send_signal": 1}
BIRTHS = ("clone", "clone3", "fork", "vfork")
ACCEPTS, RECEIVES = ("accept", "accept4"), ("recvmsg", "recvmmsg")
SOCKET_CALLS = ("connect", "bind", "sendto", "sendmsg", "sendmmsg", *ACCEPTS, *RECEIVES)
# Compared by name and count alone, and by the operation where they have one.
PLAIN = ("unshare", "setns", "pivot_root", "chroot", "capset", "setuid", "setgid", "setreuid", "setregid", "setresuid",
         "setresgid", "setgroups", "landlock_restrict_self", "io_uring_setup", "memfd_create", "umount2", "mount",
         "listen")
PRCTL = ("PR_SET_DUMPABLE", "PR_SET_PTRACER", "PR_SET_SECCOMP", "PR_CAP_AMBIENT", "PR_CAPBSET_DROP",
         "PR_SET_SECUREBITS", "PR_SET_KEEPCAPS", "PR_SET_NO_NEW_PRIVS", "PR_SET_CHILD_SUBREAPER")
IOCTL = ("FICLONE", "FICLONERANGE", "FS_IOC_SETFLAGS", "FS_IOC_FSSETXATTR")
# ?: a call that this strace does not know is left out.
TRACED = ",".join(f"?{name}" for name in (
    *FILE_CALLS, *OPENS, *SIGNALS, *BIRTHS, *PLAIN, *SOCKET_CALLS, "execve", "execveat", "socket", "seccomp", "prctl",
    "ioctl", "mmap", "chdir", "fchdir"))
COMMAND = f"strace -f -y -v -s 65535 --decode-pids=pidns -o @RUN@/strace -e trace={TRACED}"
OPEN_FLAGS = ("O_CREAT", "O_EXCL", "O_TRUNC")

TOKEN = re.compile(r'(?P<string>"(?P<text>(?:[^"\\]|\\.)*)"(?:\.\.\.)?)|'
                   r'(?P<fd>(?:AT_FDCWD|\d+)<(?P<at>(?:[^<>\\]|\\.)*)>(?:\(deleted\))?)|'
                   r'(?P<note>/\*.*?\*/)|(?P<open>[\[{(])|(?P<close>[\]})])|(?P<comma>,)|'
                   r'(?P<rest>[^"\[\](){},]+?(?=\d|AT_FDCWD|["\[\](){},/])|.)', re.S)
PID = r"(\d+)(?: /\* \d+ in strace's PID NS \*/)?"
LINE = re.compile(r"^(\d+) (\w+)\((.*)\) += (-?\d+|0x[0-9a-f]+|\?)(?:<((?:[^<>\\]|\\.)*)>(?:\(deleted\))?)?"
                  r"(?: /\* (\d+) in strace's PID NS \*/)?(?: (E\w+))?", re.S)


class Event(NamedTuple):
    text: str
    result: str  # ok (of an exec with its image), an error's name, or ? when it is not known


class Call(NamedTuple):
    pid: str
    name: str
    arguments: list
    given: str
    returned: str
    path: str  # of the descriptor that it returned
    error: str

    @property
    def result(self):
        if self.returned == "?":
            return "?"
        return self.error or "ok"


class Argument(NamedTuple):
    text: str
    string: str  # unescaped, or None
    at: str  # of a descriptor, or None


def unescaped(text):
    return text.encode("latin-1", "backslashreplace").decode("unicode_escape").encode("latin-1").decode(
        errors="surrogateescape")


def split(text):
    """The arguments of a call. What is in brackets stays together."""
    found, depth, parts, string, at = [], 0, [], None, None
    for token in TOKEN.finditer(text):
        depth += bool(token["open"]) - bool(token["close"])
        if token["comma"] and depth == 0:
            found.append(Argument("".join(parts).strip(), string, at))
            parts, string, at = [], None, None
            continue
        if depth == 0 and token["string"]:
            string = unescaped(token["text"])
        if depth == 0 and token["fd"]:
            at = unescaped(token["at"])
        parts.append(token[0])
    found.append(Argument("".join(parts).strip(), string, at))
    return found


def whole_lines(log):
    """The lines of strace -f, those that were interrupted put together again."""
    begun = {}
    for line in log.read_text(errors="surrogateescape").splitlines():
        pid, _, rest = line.partition(" ")
        rest = rest.lstrip()
        superseded = re.match(r"\+\+\+ superseded by execve in pid (\d+)", rest)
        if superseded:
            begun[pid] = begun.pop(superseded[1], "")
            continue
        if rest.endswith("<unfinished ...>"):
            begun[pid] = rest.removesuffix("<unfinished ...>").rstrip()
            continue
        resumed = re.match(r"<\.\.\. \w+ resumed>", rest)
        if resumed:
            rest = begun.pop(pid, "") + rest[resumed.end():]
        yield f"{pid} {rest}"
    for pid, rest in begun.items():  # killed while they were made
        yield f"{pid} {rest}) = ?"


def calls_of(log):
    for line in whole_lines(log):
        match = LINE.match(line)
        # ERESTART…: a signal came first, and the call is made again.
        if match and not (match[7] or "").startswith("ERESTART"):
            yield Call(match[1], match[2], split(match[3]), match[3], match[6] or match[4],
                       unescaped(match[5]) if match[5] else "", match[7])


class Tasks:
    """Which process each thread is of, and its working directory, where strace does not print it."""

    def __init__(self, first, calls):
        self.first, self.known, self.parents, self.images = first, {}, {}, {}
        self.links = {}  # symbolic links that the tree made; they may be gone
        for call in calls:
            if call.name in BIRTHS and call.returned.isdigit():
                self.parents[call.returned] = (call.pid, "CLONE_FS" in call.given, "CLONE_THREAD" in call.given)

    def folder(self, pid):
        if pid not in self.known:
            parent, shared, _ = self.parents.get(pid, (None, False, False))
            above = self.folder(parent) if parent else [self.first]
            self.known[pid] = above if shared else list(above)
        return self.known[pid]

    def process(self, pid):
        parent, _, thread = self.parents.get(pid, (None, False, False))
        return self.process(parent) if thread else pid

    def image(self, pid):
        """The program that the caller runs, as far as the calls were gone through."""
        while pid and self.process(pid) not in self.images:
            pid = self.parents.get(self.process(pid), (None,))[0]
        return self.images[self.process(pid)] if pid else None


def resolved(path, follow):
    """Links of the path followed, as they stand after the run; in procfs they would be this program's own."""
    path = path.rstrip("/") or "/"
    if path.startswith("/proc/"):
        return os.path.normpath(path)
    if follow:
        return os.path.realpath(path)
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def paths_of(call, shape, here, follow):
    at, found = 0, []
    arguments = call.arguments
    for letter in shape:
        start, name = here, None
        if letter in "df":
            start = os.path.join(here, arguments[at].at or "")
            at += 1
        if letter in "dpt":
            name = arguments[at].string if at < len(arguments) else None
            at += 1
        if letter == "t":
            found.append(name or "")
        elif name:
            found.append(resolved(os.path.join(start, name), follow))
        else:
            found.append(start)
    return found


def image_of(path, links):
    """The file that the kernel maps for a program: of a script its interpreter."""
    for _ in range(5):
        path = os.path.realpath(links.get(path, path))
        try:
            with open(path, "rb") as program:
                first = program.readline(256)
        except OSError:
            return path
        if not first.startswith(b"#!"):
            return path
        path = os.fsdecode(first[2:].split()[0])
    return path


def address_of(argument, here, follow):
    """A socket address as `family address port`, or None. A name in the file system is resolved as the call does it."""
    inet = re.search(r'sin6?_port=htons\((\d+)\).*?"([^"]+)"', argument)
    if inet:
        return f"inet {inet[2]} {inet[1]}"
    if "sa_family=AF_NETLINK" in argument:
        return "netlink"
    unix = re.search(r'sun_path=(@?)"((?:[^"\\]|\\.)*)"', argument)
    if not unix:
        return None
    name = unescaped(unix[2])
    return f"unix @{name}" if unix[1] else f"unix {resolved(os.path.join(here, name), follow)}"


def open_event(call, here):
    flags = next((argument.text for argument in call.arguments
                  if "O_" in argument.text and argument.string is None), "")
    if call.name == "creat":
        flags = "O_WRONLY|O_CREAT|O_TRUNC"
    words = re.findall(r"O_\w+", flags)
    if "O_PATH" in words:
        return None
    path = call.path or paths_of(call, OPENS[call.name], here, "O_NOFOLLOW" not in words and "O_EXCL" not in words)[0]
    if "O_TMPFILE" in words:
        return Event(f"open unnamed {os.path.dirname(path) if call.path else path}", call.result)
    if not {"O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"} & set(words):
        return Event(f"read {path}", "?")
    return Event(f"open {'|'.join(flag for flag in OPEN_FLAGS if flag in words) or '-'} {path}", call.result)


def file_event(call, here, tasks):
    kind, shape = FILE_CALLS[call.name]
    if call.name == "unlinkat" and "AT_REMOVEDIR" in call.given:
        kind = "rmdir"
    paths = paths_of(call, shape, here, kind in FOLLOWED and not call.name.startswith("l"))
    if kind == "symlink":
        paths.reverse()
        if call.result == "ok":
            tasks.links[paths[0]] = os.path.join(os.path.dirname(paths[0]), paths[1])
    mode = ""
    if call.name in HAVE_MODE:
        mode = f" {int(call.arguments[HAVE_MODE[call.name]].text, 8) & 0o7777:04o}"
    return Event(f"{kind} {' -> '.join(paths)}{mode}", call.result)


def exec_event(call, here, tasks):
    shape, at = ("p", 1) if call.name == "execve" else ("d", 2)
    path = paths_of(call, shape, here, False)[0]
    argv = [unescaped(token["text"]) for token in TOKEN.finditer(call.arguments[at].text) if token["string"]]
    result = call.result
    if result == "ok":
        if re.fullmatch(r"/proc/(self|thread-self|\d+)/exe", path):
            found = tasks.image(call.pid)
        else:
            found = None if path.startswith("/proc/") else image_of(path, tasks.links)  # a descriptor says too little
        tasks.images[tasks.process(call.pid)] = found
        result = f"ok, {found}" if found else "?"
    return Event(f"exec {path} {argv}", result)


def socket_events(call, here):
    if call.name in ACCEPTS:
        if call.result != "EAGAIN":  # how often nobody was there is a matter of time
            yield Event("accept", call.result)
        return
    if "SCM_RIGHTS" in call.given:
        yield Event(f"{'receive' if call.name in RECEIVES else 'pass'} descriptors", call.result)
    if call.name in RECEIVES:
        return
    parts = call.given.split("msg_name=")[1:] if call.name == "sendmmsg" else [call.given]
    addresses = [address_of(part, here, call.name != "bind") for part in parts]
    kind = "send" if call.name.startswith("send") else call.name
    for address in addresses:
        if address and not (kind == "send" and address.startswith("unix")):
            yield Event(f"{kind} {address}", call.result)


def mapping_event(call):
    words = [argument.text for argument in call.arguments]
    if len(words) < 5 or "PROT_WRITE" not in words[2] or "MAP_SHARED" not in words[3]:
        return None
    path = call.arguments[4].at
    return Event(f"map {path}", call.result) if path and path.startswith("/") else None


def other_event(call, tasks):
    """The calls of which only the name and the operation count."""
    name, arguments = call.name, call.arguments
    if name in SIGNALS:
        target = re.match(PID, arguments[0].text)
        if arguments[SIGNALS[name]].text == "0" or (target and tasks.process(target[1]) == tasks.process(call.pid)):
            return None
        return Event(f"signal {arguments[SIGNALS[name]].text}", call.result)
    if name in BIRTHS:
        return Event("namespace", "ok") if "CLONE_NEW" in call.given and call.returned.isdigit() else None
    if name == "prctl":
        return Event(f"prctl {arguments[0].text}", call.result) if arguments[0].text in PRCTL else None
    if name == "seccomp":
        return Event("seccomp", call.result) if "SECCOMP_SET_MODE_" in call.given else None
    if name == "socket":
        return Event("socket", call.result) if re.search("AF_NETLINK|AF_PACKET|AF_VSOCK|SOCK_RAW", call.given) else None
    if name == "ioctl":
        if len(arguments) < 2 or not set(arguments[1].text.split(" or ")) & set(IOCTL):
            return None
        return Event(f"ioctl {arguments[0].at}", call.result)
    return Event(name, call.result) if name in PLAIN else None


def events_of(log, folder):
    """All that the traced tree did, one event a call."""
    calls = list(calls_of(log))
    tasks = Tasks(str(folder / "work"), calls)
    found = []
    for call in calls:
        here = tasks.folder(call.pid)
        if call.name in ("chdir", "fchdir"):
            to = call.arguments[0].string if call.name == "chdir" else call.arguments[0].at
            if call.result == "ok":
                here[0] = os.path.normpath(os.path.join(here[0], to or ""))
        elif call.name in OPENS:
            found.append(open_event(call, here[0]))
        elif call.name in FILE_CALLS:
            found.append(file_event(call, here[0], tasks))
        elif call.name in ("execve", "execveat"):
            found.append(exec_event(call, here[0], tasks))
        elif call.name in SOCKET_CALLS:
            found.extend(socket_events(call, here[0]))
        elif call.name == "mmap":
            found.append(mapping_event(call))
        else:
            found.append(other_event(call, tasks))
    return [event for event in found if event]
