"""Fetching what others made, with apt, and building it: for the runners of their tests."""

import collections
import concurrent.futures
import functools
import hashlib
import pathlib
import platform
import shutil
import subprocess

# `version`: of the Debian package, or "" for the one that the suite has now. `sha256`: of the archive, whatever apt says.
Source = collections.namedtuple("Source", "package version suite sha256 folder")


class Failed(Exception):
    pass


def run(command, **how):
    """For building: the output is only of interest when it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          check=False, **how)
    if done.returncode:
        raise Failed(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout[-2000:]}")
    return done.stdout


def digest(path):
    sha = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            sha.update(block)
    return sha.hexdigest()


@functools.lru_cache(maxsize=1)  # of other suites the lists take the place of these
def own_lists(cache, suites):
    """The lists of the machine's Debian archive, as source too, in these suites. Returns apt's options."""
    archives = run(["apt-get", "indextargets", "--format", "$(ORIGIN)|$(CODENAME)|$(REPO_URI)",
                    "Created-By: Packages"])
    codename = platform.freedesktop_os_release().get("VERSION_CODENAME")
    addresses = [uri for origin, name, uri in (line.split("|") for line in archives.split())
                 if origin == "Debian" and name == codename]
    if not addresses:
        raise Failed("apt has no Debian archive configured")
    folder = cache / "apt"
    (folder / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (folder / "suites.sources").write_text(
        f"Types: deb deb-src\nURIs: {addresses[0]}\nSuites: {' '.join(sorted(suites))}\nComponents: main\n"
        "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n", encoding="utf-8")
    options = ["-o", f"Dir::Etc::SourceList={folder}/suites.sources", "-o", "Dir::Etc::SourceParts=/nonexistent",
               "-o", f"Dir::State::Lists={folder}/lists", "-o", "APT::Sandbox::User=root"]
    run(["apt-get", *options, "update"])
    return options


def fetch(cache, source, suites=()):
    """The archive of a source, with the pinned digest. `suites`: those that apt is to know besides its own."""
    folder = cache / "archives"
    folder.mkdir(parents=True, exist_ok=True)

    def wanted():
        return next((path for path in sorted(folder.glob(f"{source.package}_*.orig.tar.*"))
                     if path.suffix != ".asc" and digest(path) == source.sha256), None)
    if found := wanted():
        return found
    options = own_lists(cache, frozenset((source.suite, *suites)))
    which = f"{source.package}={source.version}" if source.version else f"{source.package}/{source.suite}"
    run(["apt-get", *options, "source", "--download-only", "--tar-only", which], cwd=folder)
    if found := wanted():
        return found
    raise Failed(f"no archive of {source.package} {source.version} has the pinned SHA-256")


def unpack(cache, source, parts=(), suites=()):
    """A fresh tree of a source, and its folder."""
    archive = fetch(cache, source, suites)
    folder = cache / "build" / source.folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    run(["tar", "-xf", archive, "--no-same-owner", "-C", folder.parent, *[f"{source.folder}/{part}" for part in parts]])
    return folder


def packages(cache, suite, names, folder):
    """Debian packages, unpacked below a folder and not installed: nothing is started, and the machine stays as it is."""
    archives = cache / "archives"
    archives.mkdir(parents=True, exist_ok=True)
    options = own_lists(cache, frozenset((suite,)))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in names:
        run(["apt-get", *options, "download", f"{name}/{suite}"], cwd=archives)
        newest = max(archives.glob(f"{name}_*.deb"), key=lambda path: path.stat().st_mtime)
        run(["dpkg-deb", "-x", newest, folder])


def compile_all(jobs, commands):
    """Each command by itself; those that fail are named: a test may need what this machine lacks."""
    def one(item):
        name, command, folder = item
        done = subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        return name if done.returncode else None
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return [name for name in pool.map(one, commands) if name]


def read_names(file):
    """Patterns of names, each with what is said of it."""
    lines = pathlib.Path(file).read_text(encoding="utf-8").splitlines()
    return [line.split(None, 1) for line in lines if line and not line.startswith("#")]
