#!/usr/bin/env bash
# timeout: 120
# What is recorded of reading under each lens, counted against loops of a known length and against strace.
. "$(dirname "$0")/lib.sh"

cat >reader.py <<'END'
import ctypes, os, sys
libc = ctypes.CDLL(None)
def opens(path, times, flags=os.O_RDONLY):
    for _ in range(times):
        os.close(os.open(path, flags, 0o640))
opens("seven", 7)
opens("once", 1)
os.link("seven", "seven-too")
opens("seven-too", 4)                        # the same inode
opens(b"odd\xff", 3)
opens("created", 1, os.O_RDONLY | os.O_CREAT)
opens("there", 2, os.O_RDONLY | os.O_CREAT)
opens("emptied", 1, os.O_RDONLY | os.O_TRUNC)
child = os.fork()
if child == 0:
    opens("seven", 5)
    os._exit(0)
os.waitpid(child, 0)
for _ in range(3):
    if os.fork() == 0:
        os.execv("/bin/cat", ["cat", "once", "once"])
    os.wait()
print(os.getpid(), child)
END
prepare() {
	rm -f seven once seven-too created there emptied odd*
	for name in seven once there emptied "$(printf 'odd\377')"; do echo x >"$name"; done
}
under() { # LENS: trace the reader; PARENT and CHILD are its processes
	prepare
	traced --lens "$1" --name "$1-$RANDOM" -- /usr/bin/python3 -S -E reader.py >pids || fail "lens $1"
	read -r PARENT CHILD < <(tail -n 1 pids)
}
# records TYPE: the records of that schema of the last run
records() {
	/usr/bin/python3 - "$ASSURE_HOME/runs/$(assure show last --json | sed -E 's/.*"id":"([^"]*)".*/\1/')/run.sqlite" "$1" <<'END'
import sqlite3, sys
for (text,) in sqlite3.connect(sys.argv[1]).execute("SELECT json FROM records WHERE type = ? ORDER BY seq", sys.argv[2:]):
    print(text.decode())
END
}
# What opens with O_CREAT or O_TRUNC changes something, whatever else it is.
changes() {
	assert_effect --count 1 kind=file.create "path=$PWD/created" result.state=ok flags~O_RDONLY flags~O_CREAT mode=0640
	assert_effect --count 2 kind=file.write "path=$PWD/there" result.state=ok flags~O_CREAT args.looked_up=present
	assert_effect --count 1 kind=file.write "path=$PWD/emptied" result.state=ok flags~O_TRUNC
	assert_effect --count 1 kind=file.link "path=$PWD/seven" "to.path=$PWD/seven-too"
	assert_effect --count 3 kind=proc.exec argv.0=cat result.state=ok
}

# --- changes: nothing of reading
under changes
changes
assert_effect --none kind=file.read
assert_effect --none kind=file.map
assert_eq '' "$(records assure.reads/1)" 'reads under the lens changes'
assert_contains "$(assure show last)" '^lens +changes$' lens

# --- reads: once for each process, file and name, and how often when the process ends
under reads
changes
assert_effect --count 1 kind=file.read "path=$PWD/seven" process.pid="$PARENT" how=observed
assert_effect --count 1 kind=file.read "path=$PWD/seven" process.pid="$CHILD"
assert_effect --count 1 kind=file.read "path=$PWD/seven-too" process.pid="$PARENT"
assert_effect --count 1 kind=file.read "path=$PWD/once" process.pid="$PARENT"
assert_effect --count 1 kind=file.read path_b64? process.pid="$PARENT"
assert_effect --count 4 kind=file.read "path=$PWD/once"
assert_effect --none kind=file.map
records assure.reads/1 >counted
assure effects last --json >effects
/usr/bin/python3 - "$PARENT" "$CHILD" <<'END' || fail "counts: $(cat counted)"
import base64, json, os, sys
parent, child = map(int, sys.argv[1:])
reads = [json.loads(line) for line in open("counted")]
effects = [json.loads(line) for line in open("effects")]
def count(pid, path):
    found = [i["count"] for r in reads if r["pid"] == pid for i in r["items"]
             if path in (os.path.basename(i.get("path", "")).encode(),
                         os.path.basename(base64.b64decode(i.get("path_b64", ""))))]
    assert len(found) < 2, (pid, path, found)
    return found[0] if found else 0
assert count(parent, b"seven") == 7, reads
assert count(parent, b"seven-too") == 4, reads
assert count(parent, b"odd\xff") == 3, reads
assert count(child, b"seven") == 5, reads
assert count(parent, b"once") == 0, "a file that was read once is in the record of what was read again"
cats = [r for r in reads if r["pid"] not in (parent, child)]
assert len(cats) == 3 and all([i["count"] for i in r["items"] if i["path"].endswith("/once")] == [2] for r in cats), cats
end = {e["process"]["pid"]: e["seq"] for e in effects if e["kind"] == "proc.exit"}
for record in reads:
    mine = [e for e in effects if e["kind"] == "file.read" and e["process"]["pid"] == record["pid"] and "ino" in e]
    assert record["total_files"] == len(mine), (record, len(mine))
    assert record["total_reads"] == len(mine) + sum(i["count"] - 1 for i in record["items"]), record
    assert record["process"] == mine[0]["process"]["id"]
    assert abs(record["seq"] - end[record["pid"]]) < 3, "not at the end of the process"
    ids = {(e["dev"], e["ino"], e.get("path", e.get("path_b64"))) for e in mine}
    assert len(ids) == len(mine), "one file twice by one name"
    assert all((i["dev"], i["ino"], i.get("path", i.get("path_b64"))) in ids for i in record["items"]), record
END

# A number is given to the next file when the one that had it is gone, by another name or by the same.
traced -- /usr/bin/python3 -S -E -c '
import os
for name in ("first", "next", "next", "next"):
    os.close(os.open(name, os.O_WRONLY | os.O_CREAT))
    for _ in range(2):
        os.close(os.open(name, os.O_RDONLY))
    os.unlink(name)'
assert_effect --count 1 kind=file.read "path=$PWD/first"
assert_effect --count 3 kind=file.read "path=$PWD/next"

# A loop that is long enough for a count to go wrong.
traced -- /usr/bin/python3 -S -E -c '
import os, threading
def read():
    for _ in range(500):
        os.close(os.open("once", os.O_RDONLY))
threads = [threading.Thread(target=read) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]'
assert_effect --count 1 kind=file.read "path=$PWD/once"
assert_contains "$(records assure.reads/1)" '"count":2000,[^}]*/once"' 'a loop of four threads'

# --- all: every one, and what becomes code
under all
changes
assert_effect --count 7 kind=file.read "path=$PWD/seven" process.pid="$PARENT"
assert_effect --count 4 kind=file.read "path=$PWD/seven-too" process.pid="$PARENT"
assert_effect --count 5 kind=file.read "path=$PWD/seven" process.pid="$CHILD"
assert_effect --count 3 kind=file.read path_b64? process.pid="$PARENT"
assert_effect --count 7 kind=file.read "path=$PWD/once"
assert_eq '' "$(records assure.reads/1)" 'counts beside every single read'
assert_effect --at-least 4 kind=file.map path~'/libc\.so' flags~PROT_EXEC
assert_effect --none kind=file.map 'flags~^(?!.*PROT_EXEC)'

# --- strace as the judge of how many there are
cat >work.sh <<'END'
cat seven once seven; grep -r x . >/dev/null; ls /; sh -c 'head -n 1 seven; cat missing'; true
END
if usable strace -f -o /dev/null true; then
	prepare
	strace -f -qq -e trace=open,openat,openat2 -o native sh work.sh >/dev/null 2>&1
	prepare
	traced --lens all -- sh work.sh >/dev/null 2>&1
	wanted=$(grep -E 'open(at2?)?\(' native | grep -cvE '<unfinished \.\.\.>$|O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_PATH|SIG')
	wanted=$((wanted + $(grep -cE 'open.*<unfinished \.\.\.>$' native)))
	assert_effect --count "$wanted" kind=file.read
	maps=$(strace -f -qq -e trace=mmap,mprotect -o native sh work.sh >/dev/null 2>&1
		grep -cE 'mmap\(.*PROT_EXEC.*MAP_(PRIVATE|SHARED).*, [0-9]+, [0-9a-fx]+\)' native)
	assert_effect --count "$maps" kind=file.map syscall=mmap flags~PROT_EXEC
else
	skip_part 'the numbers of strace (it cannot be used here)'
fi

# --- a directory is read too, and has no mode
mkdir folder
traced -- ls folder >/dev/null
assert_effect --count 1 kind=file.read "path=$PWD/folder" type=dir flags~O_DIRECTORY
assert_effect --count 1 kind=file.read "path=$PWD/folder" mode!

exit 0
