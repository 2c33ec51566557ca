"""What is measured: single calls in a loop, and whole programs."""
import dataclasses
import io
import sys
import tarfile
from typing import Callable


def nothing(_folder):
    pass


@dataclasses.dataclass
class Workload:
    name: str
    meaning: str
    command: list
    prepare: Callable = nothing  # fills the folder that the command runs in; not timed
    tools: tuple = ()


def small_files(folder, count):
    for number in range(count):
        part = folder / f"part{number % 10}"
        part.mkdir(exist_ok=True)
        (part / f"file{number}.txt").write_text(f"line {number}\n" * 20, encoding="ascii")


def git_tree(folder):
    small_files(folder, 200)


def c_project(folder):
    objects = []
    for number in range(20):
        objects.append(f"part{number}.o")
        (folder / f"part{number}.c").write_text(
            f"#include <stdio.h>\n#include <stdlib.h>\nint part{number}(int a)\n{{\n\treturn a + {number};\n}}\n",
            encoding="ascii")
    (folder / "main.c").write_text("int part0(int a);\nint main(void)\n{\n\treturn part0(0);\n}\n", encoding="ascii")
    (folder / "Makefile").write_text(
        f"main: main.o {' '.join(objects)}\n\tcc -o $@ $^\n%.o: %.c\n\tcc -O1 -c -o $@ $<\n", encoding="ascii")


def archive(folder):
    with tarfile.open(folder / "files.tar", "w") as output:
        for number in range(2000):
            text = f"line {number}\n".encode() * 20
            entry = tarfile.TarInfo(f"tree/part{number % 20}/file{number}.txt")
            entry.size = len(text)
            output.addfile(entry, io.BytesIO(text))


def transactions(folder):
    lines = ["CREATE TABLE t(n INTEGER PRIMARY KEY, v TEXT);"]
    lines += [f"INSERT INTO t(v) VALUES ('value {number}');" for number in range(500)]
    (folder / "script.sql").write_text("PRAGMA synchronous=OFF;\n" + "\n".join(lines) + "\n", encoding="ascii")


NODE = "const { spawnSync } = require('child_process');" \
    "for (let i = 0; i < 30; i++) if (spawnSync('/bin/true').status !== 0) process.exit(1);"

GIT = "git init -q . && git add . && git -c user.name=n -c user.email=e@example.org -c gc.auto=0 commit -qm first"


def all_of_them(programs):
    open_close, spawn_loop = str(programs / "open_close"), str(programs / "spawn_loop")
    return [
        Workload("open for writing", "5000 opens of one file for writing, and closes", [open_close, "write", "5000"]),
        Workload("open for reading", "5000 opens of one file for reading, and closes", [open_close, "read", "5000"]),
        Workload("mkdir", "2500 mkdir and rmdir", [open_close, "mkdir", "2500"]),
        Workload("rename", "5000 renames", [open_close, "rename", "2500"]),
        Workload("spawn", "200 times posix_spawn of /bin/true", [spawn_loop, "200"]),
        Workload("git", "init, add and commit of 200 small files", ["sh", "-c", GIT], git_tree, ("git",)),
        Workload("make", "a C project of 21 small files with -j2", ["make", "-s", "-j2"], c_project, ("make", "cc")),
        Workload("tar", "extracting 2000 small files", ["tar", "xf", "files.tar"], archive, ("tar",)),
        Workload("node", "node starting 30 programs", ["node", "-e", NODE], nothing, ("node",)),
        Workload("sqlite", "500 transactions, each its own journal file",
                 ["sqlite3", "base.db", ".read script.sql"], transactions, ("sqlite3",)),
        Workload("find", "over /usr/share/doc", ["find", "/usr/share/doc", "-type", "f"], nothing, ("find",)),
        Workload("python", "starting an interpreter that imports a few modules",
                 [sys.executable, "-c", "import json, argparse, subprocess, http.client"]),
    ]
