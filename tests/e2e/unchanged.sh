#!/usr/bin/env bash
# What a process inherits is what it would have inherited without us.
. "$(dirname "$0")/lib.sh"

cat >look <<'LOOK'
#!/usr/bin/env bash
env -0 | LC_ALL=C sort -z | tr '\0' '\n' | grep -v '^_='
umask
ulimit -a
ulimit -aH
pwd -P
nice
readlink /proc/self/cwd /proc/self/root
readlink /proc/self/ns/*
cat /proc/self/oom_score_adj /proc/self/cgroup /proc/self/personality /proc/self/coredump_filter
# NoNewPrivs and Seccomp differ by design, except that root keeps its setuid programs.
grep -E '^(Uid|Gid|Groups|Umask|SigBlk|SigIgn|SigCgt|ShdPnd|SigPnd|Cap|Cpus_allowed|Mems_allowed|THP|Speculation)' /proc/self/status
[ "$(id -u)" -ne 0 ] || grep ^NoNewPrivs /proc/self/status
LOOK
chmod 755 look

compare() { # WHAT
	./look >native 2>&1 </dev/null
	traced -- ./look >with 2>&1 </dev/null
	cmp -s native with || fail "$1: $(diff native with)"
}

compare 'plain'
(
	umask 027
	ulimit -Sn 200
	ulimit -Sf 100000
	ulimit -Ss 4096
	# shellcheck disable=SC2030 # only here
	export ODD=$'a\nb\x01"' EMPTY='' LD_BIND_NOW=1
	trap '' HUP USR1
	mkdir -p 'an odd * name'
	cp look 'an odd * name/look'
	cd 'an odd * name' || exit 1
	compare 'with everything changed'
) || exit 1
(
	unset HOME LANG TERM USER LOGNAME
	compare 'with few variables'
) || exit 1

# A blocked signal stays blocked, a pending one stays away, nice stays.
cat >blocked.py <<'PY'
import os, signal, subprocess, sys
def prepare():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2, signal.SIGCHLD, signal.SIGTSTP})
    os.nice(3)
for command in (["./look"], [os.environ["ASSURE"], "trace", "--quiet", "--", "./look"]):
    print(subprocess.run(command, preexec_fn=prepare, stdout=subprocess.PIPE, text=True).stdout, end="",
          file=open("native" if len(command) == 1 else "with", "w"))
PY
/usr/bin/python3 blocked.py || fail 'blocked.py'
cmp -s native with || fail "with blocked signals: $(diff native with)"
