# For end-to-end tests: `. "$(dirname "$0")/lib.sh"`. run.py says what a test finds in its environment.
# shellcheck shell=bash
set -u
here=$(cd "$(dirname "$0")" && pwd)
origin=$PWD

fail() {
	printf 'FAIL: %s\n' "$*" >&2
	exit 1
}

# The whole test cannot be done here.
skip() {
	printf 'skip: %s\n' "$*"
	exit 77
}

# One part of the test cannot be done here.
skip_part() { printf 'skip: %s\n' "$*"; }

assert_eq() { # WANTED GOT WHAT
	[ "$1" = "$2" ] || fail "$3: wanted [$1], got [$2]"
}

assert_contains() { # TEXT PATTERN(ERE) WHAT
	grep -qE -- "$2" <<<"$1" || fail "$3: no [$2] in [$1]"
}

assert_one_line() { # TEXT WHAT
	[ -n "$1" ] || fail "$2: nothing was said"
	[ "$(wc -l <<<"$1")" -eq 1 ] || fail "$2: more than one line: [$1]"
}

# assert_effect [--run RUN] [--count N | --none | --at-least N] FIELD=VALUE…: see effects.py.
assert_effect() {
	/usr/bin/python3 "$here/effects.py" "$@" || fail "effects: $*"
}

assure() { "$ASSURE" "$@"; }

# traced [OPTION…] -- COMMAND…: quietly, so that stderr is the agent's own.
traced() { "$ASSURE" trace --quiet "$@"; }

# run COMMAND…: STATUS is then its status as a parent sees it, `exit N` or `signal N` (which $? does not tell apart).
status_file=${TMPDIR:-/tmp}/status
run() {
	/usr/bin/python3 -c '
import os, signal, sys
child = os.fork()
if child == 0:
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(sys.argv[2], sys.argv[2:])
    except OSError as problem:
        os.write(2, f"{sys.argv[2]}: {problem.strerror}\n".encode())
        os._exit(127)
status = os.waitpid(child, 0)[1]
text = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"
with open(sys.argv[1], "w") as out:
    out.write(text)' "$status_file" "$@"
	# shellcheck disable=SC2034 # for the test
	STATUS=$(cat "$status_file")
	rm -f "$status_file"
}
ulimit -c 0

# usable COMMAND…: whether that works here without us.
usable() { "$@" >/dev/null 2>&1 </dev/null; }

# tree_of FOLDER: kind, mode and content of everything in it, in a fixed order.
tree_of() {
	(cd "$1" && find . -mindepth 1 -printf '%P\0' | LC_ALL=C sort -z | while IFS= read -r -d '' name; do
		printf '%s %s' "$(stat -c '%A' -- "$name")" "$name"
		if [ -L "$name" ]; then
			printf ' -> %s' "$(readlink -- "$name")"
		elif [ -f "$name" ]; then
			printf ' %s' "$(sha256sum <"$name" | cut -d' ' -f1)"
		fi
		printf '\n'
	done)
}

# normal: what differs between any two runs of a program, taken out of its output. A test may define its own.
normal() { cat; }

# same_outcome NAME SCRIPT: SCRIPT run by `sh -euc` in the same empty folder, natively and traced: the same status,
# output and tree afterwards. The traced folder stays as $origin/NAME/w, and the run is `last`.
same_outcome() {
	local name=$1 script=$2 kind what
	local top=$origin/$name
	for kind in native traced; do
		mkdir -p "$top/$kind" "$top/w"
		cd "$top/w" || fail "$name: no folder"
		if [ $kind = native ]; then
			run sh -euc "$script" >../out 2>../err </dev/null
		else
			run "$ASSURE" trace --quiet -- sh -euc "$script" >../out 2>../err </dev/null
		fi
		cd "$origin" || fail "no $origin"
		printf '%s\n' "$STATUS" >"$top/$kind/status"
		normal <"$top/out" >"$top/$kind/stdout"
		normal <"$top/err" >"$top/$kind/stderr"
		tree_of "$top/w" | normal >"$top/$kind/tree"
		[ $kind = traced ] || rm -rf "$top/w"
	done
	for what in status stdout stderr tree; do
		cmp -s "$top/native/$what" "$top/traced/$what" ||
			fail "$name: $what differs: $(diff "$top/native/$what" "$top/traced/$what" | head -20)
native stderr: $(tail -5 "$top/native/stderr")
traced stderr: $(tail -5 "$top/traced/stderr")"
	done
	assert_eq 'exit 0' "$(cat "$top/native/status")" "$name natively ($(tail -3 "$top/native/stderr"))"
}
