"""clang-tidy on the files that changed since it last found nothing in them.

A file's key is a digest of its text, of every header and table of the project that it includes, and of .clang-tidy.
A file of several builds is looked at as the first compiles it. A key that was clean is kept in BUILD/tidy of the first.
With --seconds N no new file is begun after N seconds, the newest first; what was left is said.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.M)


def include_folders(entry):
    words = entry.get("arguments") or entry["command"].split()
    return [pathlib.Path(w[2:]) for w in words if w.startswith("-I")]


def closure(path, folders, seen):
    if path in seen:
        return
    seen[path] = text = path.read_bytes()
    for name in INCLUDE.findall(text):
        for folder in [path.parent, *folders]:
            found = folder / os.fsdecode(name)
            # The generated header changes with each commit, and nothing in it can be wrong.
            if found.is_file() and found.name != "assure_build.h":
                closure(found.resolve(), folders, seen)
                break


def key_of(path, entry, settings):
    seen = {}
    closure(path, include_folders(entry), seen)
    digest = hashlib.sha256(settings)
    for name in sorted(seen):
        digest.update(os.fsencode(os.path.relpath(name, TOP)) + b"\0" + hashlib.sha256(seen[name]).digest())
    return digest.hexdigest()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True, action="append")
    parser.add_argument("--seconds", type=float, default=0)
    arguments = parser.parse_args()
    end = time.monotonic() + arguments.seconds if arguments.seconds else None
    settings = (TOP / ".clang-tidy").read_bytes()
    clean = arguments.build[0] / "tidy"
    clean.mkdir(parents=True, exist_ok=True)

    work, known = [], set()
    for build in arguments.build:
        for entry in json.loads((build / "compile_commands.json").read_text()):
            path = pathlib.Path(entry["file"]).resolve()
            if path.is_file() and TOP in path.parents and path not in known:
                known.add(path)
                key = key_of(path, entry, settings)
                if not (clean / key).exists():
                    work.append((path.stat().st_mtime, path, key, build))
    work.sort(reverse=True)

    def tidy(item):
        _, path, key, build = item
        if end is not None and time.monotonic() > end:
            return path, None, ""
        done = subprocess.run(
            ["clang-tidy", "--quiet", "-p", str(build), str(path)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
        if done.returncode == 0:
            (clean / key).touch()
            return path, True, ""
        return path, False, done.stdout or done.stderr

    bad = left = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for path, good, text in pool.map(tidy, work):
            if good is None:
                left += 1
            elif not good:
                bad += 1
                print(text.strip().replace(str(TOP) + "/", ""), file=sys.stderr)
    if left:
        print(f"clang-tidy: {left} of {len(work)} changed files are left for the next time "
              "(contrib/x check --all looks at all)", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
