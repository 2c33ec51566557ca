"""Programs that do with processes what a tracer or a sandbox does, inside a traced tree."""

import pathlib

from suite import Suite, UNTIL, steps

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"


def with_program(name, build):
    text = (PROGRAMS / name).read_text(encoding="utf-8")
    return f"cat >{name} <<'SOURCE'\n{text}SOURCE\n{build}\n"


GDB = 'debug() { timeout 60 gdb -nx -q -batch -ex "set debuginfod enabled off" -ex "set startup-with-shell off" "$@" 2>&1 | ' \
      "grep -vE '^(Using host|.Thread debugging|warning: (Error dis|could not)|Download failed)' | sed -E 's/0x[0-9a-f]+/A/g; " \
      "s/(process|LWP|Thread) [0-9A]+/\\1 N/g'; }\n"


def tests_of_gdb(cache):
    del cache
    build = with_program("threads.c", "gcc -g -O0 -pthread -o threads threads.c")
    yield steps("gdb/batch", {
        "breaks": "debug -ex 'break step' -ex run -ex bt -ex 'info args' -ex continue --args ./threads 2 | grep -E '^#|^n|exited'",
        "steps": "debug -ex 'break step' -ex run -ex next -ex next -ex 'print n' -ex kill --args ./threads 1 | grep -E '^.1'",
        "watches": "debug -ex 'break step' -ex run -ex 'watch total' -ex continue -ex kill --args ./threads 1 | grep -E 'Old|New'",
        "threads": "debug -ex 'break step' -ex run -ex 'info threads' -ex kill --args ./threads 2 | grep -c 'Thread'",
        "signals": "debug -ex run -ex bt --args ./threads abort | grep -E 'SIGABRT|main'",
        "passes signals": "debug -ex 'handle SIGUSR1 nostop noprint pass' -ex run --args ./threads signal | grep -E 'got|exited'",
        "follows fork": "debug -ex 'set follow-fork-mode child' -ex 'set detach-on-fork on' -ex 'break child' -ex run -ex bt "
                        "--args ./threads fork | grep -E '^#0'",
        "both of a fork": "debug -ex 'set detach-on-fork off' -ex 'set schedule-multiple on' -ex run -ex 'info inferiors' "
                          "--args ./threads fork | grep -cE 'process|null'",
        "catches calls": "debug -ex 'catch syscall openat' -ex run -ex 'info program' -ex kill --args ./threads 1 | "
                         "grep -cE 'Catchpoint'",
        "catches file calls": "debug -ex 'break main' -ex run -ex 'catch syscall mkdir' -ex continue -ex continue -ex kill "
                              "--args ./threads mkdir | grep -E 'Catchpoint'; ls -d made",
        "catches exec": "debug -ex 'catch exec' -ex run -ex kill --args ./threads exec | grep -cE 'Catchpoint|exec'",
        "attaches": "./threads wait >/dev/null & p=$!; sleep 0.5; debug -p $p -ex 'bt 1' -ex detach | grep -cE 'detached|^#0'; kill $p",
        "calls": "debug -ex 'break step' -ex run -ex 'call (int)getpid() > 0' -ex kill --args ./threads 1 | grep '^.1'",
        "makes a file": "debug -ex 'break step' -ex run -ex 'call (int)creat(\"from_gdb\", 0600) > 0' -ex kill --args ./threads 1 "
                        "| grep '^.1'; stat -c %A from_gdb",
        "core": "debug -ex 'break step' -ex run -ex 'generate-core-file here' -ex kill --args ./threads 1 | grep -c Saved; "
                "debug -ex 'bt 1' threads here | grep -E '^#0'",
    }, before=build + GDB, environment={"COLUMNS": "200"}, limit=150)


def tests_of_strace(cache):
    del cache
    calls = "sed -E 's/^(\\[pid +)?[0-9]+\\]? +//; s/, si_utime=[^}]*//; s/[0-9]+/N/g'"
    yield steps("strace/options", {
        "one": "strace -o out -e trace=mkdir,mkdirat,unlink,unlinkat,rmdir sh -c 'mkdir d; rmdir d'; cat out",
        "follows": f"strace -f -o out -e trace=mkdir,rmdir,unlinkat sh -c 'mkdir d; rmdir d; exit 3'; echo $?; {calls} out",
        "per process": "strace -ff -o each sh -c 'true; /bin/true; /bin/true'; ls each.* | wc -l",
        "counts": "strace -f -c -o out sh -c 'mkdir d; rmdir d'; grep -oE 'mkdir|rmdir|execve' out | sort | uniq",
        "filter": f"strace -f --seccomp-bpf -o out -e trace=mkdir,rmdir sh -c 'mkdir d; rmdir d'; echo $?; {calls} out",
        "paths": f"strace -f -y -P $PWD/f -o out sh -c 'echo x >$PWD/f'; {calls} out | grep -c openat",
        "injects": "strace -o out -e inject=mkdir:error=ENOSPC mkdir d; ls -d d",
        "injects a value": "strace -o out -e inject=rmdir:retval=0 rmdir never; echo $?",
        "injects a signal": "strace -o out -e inject=mkdir:signal=TERM mkdir d; echo $?; ls -d d",
        "delays": "strace -o out -e inject=mkdir:delay_enter=1000 mkdir d && ls -d d",
        "attaches": "sleep 60 & p=$!; strace -o out -p $p 2>said & s=$!; until_ 'grep attached said'; kill $s; wait $s; "
                    "sed 's/[0-9][0-9]*/N/g' said; kill $p; wait $p; echo $?",
        "daemonized": "strace -D -o out sh -c 'echo word'; until_ 'grep exited out'; grep -c execve out",
        "signals": "strace -f -o out -e trace=none sh -c 'trap \"echo got\" USR1; kill -USR1 $$'; grep -c SIGUSR1 out",
        "threads": "strace -f -o out -e trace=openat python3 -c 'import threading; t = [threading.Thread(target=open, args=(\"/etc/passwd\",)) "
                   "for _ in range(4)]; [x.start() for x in t]; [x.join() for x in t]'; grep -c /etc/passwd out",
    }, before=UNTIL, apart=True, limit=90)


# Programs with mistakes in them, and what finds the mistakes.


def tests_of_sanitizers(cache):
    del cache
    source = with_program("mistakes.c", "for kind in address leak thread undefined; do gcc -w -g -O0 -pthread -fsanitize=$kind "
                                        "-o with-$kind mistakes.c; done")
    finds = "2>&1 | grep -oE 'ERROR: [A-Za-z]+: [a-z-]+|SUMMARY: .*|runtime error.*|WARNING: [A-Za-z]+: [a-z ]+'; echo ${PIPESTATUS[0]}"
    yield steps("sanitizers/programs", {
        "address": f"./with-address overflow {finds}",
        "address fine": f"./with-address fine {finds}",
        "leak": f"./with-leak leak {finds}",
        "leak with address": f"./with-address leak {finds}",
        "leak fine": f"./with-leak fine {finds}",
        "thread": f"./with-thread race {finds}",
        "undefined": f"./with-undefined shift {finds}",
        "address and files": "./with-address files && ls made",
        "address and fork": f"./with-address fork {finds}",
    }, before=source, limit=120)


def tests_of_valgrind(cache):
    del cache
    yield steps("valgrind/programs", {
        "fine": "valgrind -q --error-exitcode=9 ./plain fine; echo $?",
        "overflow": "valgrind --error-exitcode=9 ./plain overflow 2>&1 | grep -oE 'Invalid (read|write).*'; echo ${PIPESTATUS[0]}",
        "leak": "valgrind --leak-check=full --error-exitcode=9 ./plain leak 2>&1 | grep -oE 'definitely lost: .*'; echo ${PIPESTATUS[0]}",
        "fork": "valgrind -q --trace-children=yes --error-exitcode=9 ./plain fork; echo $?",
        "files": "valgrind -q ./plain files; ls made",
        "threads": "valgrind --tool=helgrind --error-exitcode=9 ./plain race 2>&1 | grep -c 'Possible data race' | sed 's/[1-9].*/some/'",
        "children": "valgrind -q --trace-children=yes sh -c 'mkdir d; rmdir d; exit 4'; echo $?",
    }, before=with_program("mistakes.c", "gcc -w -g -O0 -pthread -o plain mistakes.c"), limit=150,
        environment={"DEBUGINFOD_URLS": ""})


# Sandboxes


def tests_of_bwrap(cache):
    del cache
    common = "--ro-bind / / --dev /dev --proc /proc"
    yield steps("bwrap/scenarios", {
        "identity": f"bwrap {common} --unshare-user --uid 1234 --gid 5678 id",
        "everything": f"bwrap {common} --unshare-all sh -c 'echo $$; hostname >/dev/null && ls -d /proc/1'",
        "die with parent": f"bwrap {common} --die-with-parent --unshare-pid sh -c 'echo $$'",
        "write": f"bwrap {common} --bind $PWD $PWD sh -c 'echo x >f; mkdir d; mv f d; rm -r d; touch kept'; stat -c '%A' kept",
        "read only": f"bwrap {common} sh -c 'echo x >{'$PWD'}/f'; ls f",
        "tmpfs": f"bwrap {common} --tmpfs /mnt sh -c 'echo x >/mnt/f; cat /mnt/f'; ls /mnt/f",
        "made": "bwrap --ro-bind /usr /usr --symlink usr/lib /lib --symlink usr/lib64 /lib64 --symlink usr/bin /bin --dir /a/b "
                "--file 9 /a/file --perms 0700 --dir /p sh -c 'cat /a/file; stat -c %A /p; ls /' 9<<<given",
        "no network": f"bwrap {common} --unshare-net ip -o link | wc -l",
        "hostname": f"bwrap {common} --unshare-uts --unshare-user --hostname inner hostname",
        "new session": f"bwrap {common} --new-session sh -c 'ps -o sid= -p $$ | grep -c .'",
        "status": f"bwrap {common} --unshare-pid sh -c 'exit 42'; echo $?",
        "signal": f"bwrap {common} --unshare-pid sh -c 'kill -TERM $$; sleep 1'; echo $?",
        "info": f"bwrap {common} --unshare-pid --info-fd 5 true 5>info; grep -c child-pid info",
        "nested": f"bwrap --dev-bind / / --unshare-user bwrap --dev-bind / / --unshare-user --unshare-pid sh -c 'echo $$'",
        "overlaid": "mkdir -p low up; echo low >low/f; bwrap --ro-bind / / --bind up $PWD/low sh -c 'echo up >low/f'; cat low/f up/f",
        "capabilities": f"bwrap {common} --unshare-user --cap-drop ALL grep CapEff /proc/self/status",
    }, apart=True)


def tests_of_unshare(cache):
    del cache
    yield steps("unshare/namespaces", {
        "all": "unshare -r --mount --uts --ipc --net --pid --cgroup --time --fork --mount-proc sh -c "
               "'id -u; hostname inner; hostname; echo $$ | grep -x 1'",
        "map": "unshare -U --map-user=1234 --map-group=1234 id -u",
        "map auto": "unshare -U --map-current-user sh -c 'touch f; stat -c %U f; id -u' | sort | uniq -c | wc -l",
        "unmapped": "unshare -U id -un",
        "mount": "mkdir a b; unshare -rm sh -c 'mount -t tmpfs none a; echo x >a/f; cat a/f; mount --bind a b; ls b'; ls a b",
        "overlay": "mkdir -p low up work all; echo low >low/f; unshare -rm sh -c 'mount -t overlay -o lowerdir=low,upperdir=up,workdir=work "
                   "o all && echo new >all/f && mkdir all/d && mv all/f all/d && rm -r all/d && echo last >all/g; ls all'; ls up; cat low/f",
        "pivot": "mkdir root; unshare -rm sh -c 'mount --rbind / root 2>/dev/null; mount -t tmpfs t root/mnt; cd root; "
                 "pivot_root . mnt && echo pivoted && ls / | head -2'",
        "chroot": "mkdir r; unshare -rm sh -c 'mount --rbind / r && mount -t tmpfs t r/mnt && chroot r sh -c \"echo x >/mnt/f; ls /mnt\"'; ls /mnt/f",
        "pid status": "unshare -rpf sh -c 'exit 7'; echo $?",
        "pid signal": "unshare -rpf --kill-child sh -c 'kill -9 $$; echo survived'; echo $?",
        "nested": "unshare -rmpf --mount-proc unshare -rmpf --mount-proc sh -c 'echo $$; touch deep'; ls deep",
        "net": "unshare -rn sh -c 'ip link set lo up; ip -o link | wc -l; ip addr add 10.9.8.7/32 dev lo && ip -o -4 addr | grep -c 10.9.8.7'",
        "setgroups": "unshare -r sh -c 'cat /proc/self/setgroups'",
        "time": "unshare -rTf --boottime 100000 sh -c 'cut -d. -f1 /proc/uptime | grep -c .'",
        "enters": "unshare -rm sleep 60 & p=$!; sleep 0.5; nsenter -t $p -U -m --wd=$PWD --preserve-credentials sh -c 'id -u; touch entered'; "
                  "ls entered; kill $p",
        "propagation": "unshare -rm --propagation slave cat /proc/self/mountinfo | grep -c master: | sed 's/[1-9].*/some/'",
        "ids": "unshare -r setpriv --bounding-set -chown,-setuid sh -c 'chown 0:0 /etc/passwd; echo x >f; chmod 600 f; stat -c %A f'",
        "prlimit": "prlimit --nofile=20 --fsize=4096 sh -c 'head -c 9999 /dev/zero >f'; echo $?; stat -c %s f | grep -x 4096",
    }, apart=True)


SUITES = [
    Suite("gdb", tests_of_gdb, quick=("*",), needs=("gdb", "gcc")),
    Suite("strace", tests_of_strace, quick=("*",), needs=("strace",)),
    Suite("sanitizers", tests_of_sanitizers, quick=("*",), needs=("gcc",)),
    Suite("valgrind", tests_of_valgrind, quick=("*",), needs=("gcc", "valgrind")),
    Suite("bwrap", tests_of_bwrap, quick=("*",), needs=("bwrap",)),
    Suite("unshare", tests_of_unshare, quick=("*",), needs=("unshare",)),
]
