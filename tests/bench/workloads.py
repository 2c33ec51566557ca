"""What is measured: single calls in a loop, and whole programs."""
import dataclasses
import io
import pathlib
import shutil
import subprocess
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
        for number in range(5000):
            text = f"line {number}\n".encode() * 20
            entry = tarfile.TarInfo(f"tree/part{number % 20}/file{number}.txt")
            entry.size = len(text)
            output.addfile(entry, io.BytesIO(text))


def transactions(folder):
    lines = ["CREATE TABLE t(n INTEGER PRIMARY KEY, v TEXT);"]
    lines += [f"INSERT INTO t(v) VALUES ('value {number}');" for number in range(500)]
    (folder / "script.sql").write_text("PRAGMA synchronous=OFF;\n" + "\n".join(lines) + "\n", encoding="ascii")


NODE_SPAWNS = "const { spawnSync } = require('child_process');" \
    "for (let i = 0; i < 30; i++) if (spawnSync('/bin/true').status !== 0) process.exit(1);"

NODE = """
const fs = require('fs'), crypto = require('crypto'), { spawnSync } = require('child_process');
let words = [];
for (let i = 0; i < 150000; i++) words.push(crypto.createHash('sha256').update('word ' + i).digest('hex'));
words.sort();
for (let i = 0; i < 50; i++) fs.writeFileSync('part' + i + '.json', JSON.stringify(words.slice(i * 3000, i * 3000 + 3000)));
let count = 0;
for (let i = 0; i < 50; i++) count += JSON.parse(fs.readFileSync('part' + i + '.json')).length;
for (let i = 0; i < 10; i++) if (spawnSync('ls', ['-l']).status !== 0) process.exit(1);
process.exit(count === 150000 ? 0 : 1);
"""

GIT_SMALL = "git init -q . && git add . && git -c user.name=n -c user.email=e@example.org -c gc.auto=0 commit -qm first"

GIT = "git clone -q --no-hardlinks origin copy && cd copy && git log -p >/dev/null && git grep -c line >/dev/null && " \
    "git blame part1/file1.txt >/dev/null && git diff HEAD~100 >/dev/null && git status >/dev/null && " \
    "git checkout -q -b work HEAD~50 && echo more >>part1/file1.txt && " \
    "git -c user.name=n -c user.email=e@example.org -c gc.auto=0 commit -qam change && git log --stat >/dev/null"

TOOLS = "for i in 1 2 3 4 5 6 7 8 9 10; do ls -l /usr/bin; grep -rc line .; sed s/line/word/ part1/file1.txt; " \
    "find . -name 'file1*'; sort part2/file2.txt; git --version; python3 -c 'import json'; tar cf - .; done >/dev/null"

SOURCES = pathlib.Path(__file__).resolve().parents[2]


def git_history(folder):
    """300 files and 300 commits, each of which changes ten of them."""
    origin = folder / "origin"
    subprocess.run(["git", "init", "-q", str(origin)], check=True)
    text = []
    for commit in range(300):
        text.append(f"commit refs/heads/master\ncommitter n <e@example.org> {1700000000 + commit} +0000\n"
                    f"data 6\nchange\n")
        for number in range(300) if commit == 0 else range(commit % 30, 300, 30):
            content = "".join(f"line {line} of {number} in {commit if line % 7 == commit % 7 else 0}\n"
                              for line in range(200))
            text.append(f"M 644 inline part{number % 10}/file{number}.txt\ndata {len(content)}\n{content}\n")
    subprocess.run(["git", "-C", str(origin), "fast-import", "--quiet"], check=True, input="".join(text), text=True)
    subprocess.run(["git", "-C", str(origin), "symbolic-ref", "HEAD", "refs/heads/master"], check=True)


def real_project(folder):
    """Rooms of this project that need no generated file, as make(1) would compile them."""
    objects, rules = [], []
    for room in ("base", "tracer/os"):
        for source in sorted((SOURCES / room).glob("*.c")):
            shutil.copy(source, folder)
            objects.append(source.stem + ".o")
    includes = " ".join(f"-I{SOURCES / path}" for path in (
        "base/include", "base", "tracer/os/include", "tracer/os", "ledger/include", "specs"))
    rules = f"all: {' '.join(objects)}\n%.o: %.c\n\tcc -std=gnu17 -D_GNU_SOURCE -O2 -g {includes} -c -o $@ $<\n"
    (folder / "Makefile").write_text(rules, encoding="utf-8")


def one_transaction(folder):
    (folder / "script.sql").write_text("""
PRAGMA synchronous=OFF;
CREATE TABLE t(n INTEGER PRIMARY KEY, v TEXT, w INTEGER);
WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM c WHERE x < 400000)
INSERT INTO t SELECT x, 'value ' || x, (x * 7919) % 10007 FROM c;
CREATE INDEX i ON t(w);
SELECT count(*), sum(n) FROM t WHERE w < 5000;
SELECT w, count(*) FROM t GROUP BY w ORDER BY 2 DESC LIMIT 3;
UPDATE t SET v = v || '!' WHERE w % 3 = 0;
DELETE FROM t WHERE w % 5 = 0;
VACUUM;
""", encoding="ascii")


def all_of_them(programs):
    open_close, spawn_loop = str(programs / "open_close"), str(programs / "spawn_loop")
    return [
        Workload("open for writing", "5000 opens of one file for writing, and closes", [open_close, "write", "5000"]),
        Workload("open for reading", "5000 opens of one file for reading, and closes", [open_close, "read", "5000"]),
        Workload("mkdir", "2500 mkdir and rmdir", [open_close, "mkdir", "2500"]),
        Workload("rename", "5000 renames", [open_close, "rename", "2500"]),
        Workload("spawn", "1000 times posix_spawn of /bin/true", [spawn_loop, "1000"]),
        Workload("tools", "what agents run in shells: 81 programs, from ls to python3, over 300 small files",
                 ["sh", "-c", TOOLS], lambda folder: small_files(folder, 300), ("git", "python3")),
        Workload("git", "clone, log, grep, blame, diff, status, checkout, commit over 300 commits",
                 ["sh", "-c", GIT], git_history, ("git",)),
        Workload("make", "C sources of this project with -j2", ["make", "-s", "-j2"], real_project, ("make", "cc")),
        Workload("node", "hashes, 50 files of JSON written and read, 10 programs started", ["node", "-e", NODE], nothing,
                 ("node",)),
        Workload("sqlite", "400 000 rows in one transaction, an index, queries, updates",
                 ["sqlite3", "base.db", ".read script.sql"], one_transaction, ("sqlite3",)),
        Workload("find", "over /usr, with a look at each file", ["find", "/usr", "-xdev", "-type", "f", "-size", "+1000k"]),
        Workload("tar", "extracting 5000 small files", ["tar", "xf", "files.tar"], archive, ("tar",)),
        Workload("git, small", "init, add and commit of 200 small files", ["sh", "-c", GIT_SMALL], git_tree, ("git",)),
        Workload("make, small", "21 C files of five lines with -j2", ["make", "-s", "-j2"], c_project, ("make", "cc")),
        Workload("node, small", "node starting /bin/true 30 times", ["node", "-e", NODE_SPAWNS], nothing, ("node",)),
        Workload("sqlite, small", "500 transactions, each its own journal file",
                 ["sqlite3", "base.db", ".read script.sql"], transactions, ("sqlite3",)),
        Workload("python", "starting an interpreter that imports a few modules",
                 [sys.executable, "-c", "import json, argparse, subprocess, http.client"]),
    ]
