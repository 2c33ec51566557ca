#!/usr/bin/env bash
# timeout: 120
# A run is found by what people type, and read back by every command.
. "$(dirname "$0")/lib.sh"

# gives STATUS WHAT COMMAND…: with that status; its output is in `out` and `err`.
gives() {
	local status=$1 what=$2
	shift 2
	run timeout -s KILL 30 "$@" >out 2>err </dev/null
	assert_eq "exit $status" "$STATUS" "$what ($(head -c 600 err))"
}
refuses() { # PATTERN WHAT COMMAND…: one line, nothing on stdout
	local pattern=$1 what=$2
	shift 2
	gives 1 "$what" "$@"
	assert_eq '' "$(cat out)" "$what: stdout"
	assert_one_line "$(cat err)" "$what"
	assert_contains "$(cat err)" "$pattern" "$what"
}
id_of() { assure show "$1" --json | sed -E 's/.*"id":"([^"]*)".*/\1/'; }
lines() { assure effects "$@" | wc -l; }

gives 0 'runs of none' "$ASSURE" runs
gives 0 'runs of none' "$ASSURE" runs --json
assert_eq '{"runs":[],"schema":"assure.runs/1"}' "$(cat out)" 'runs of none'

bad=$(printf 'bad\377\376')
odd=$(printf 'line\nbreak \033[31mred \342\200\256')
cat >agent.sh <<'END'
mkdir -p a/b/c
echo x >a/one.txt; echo x >a/b/two.txt; echo x >a/b/c/three.log; echo x >"a/$1"; echo x >"a/$2"
mv a/one.txt a/moved.txt
mkdir a; rmdir missing; ./missing
sh -c 'echo $$ >pid; echo y >inner'
true
END
traced --name first -- sh agent.sh "$bad" "$odd" 2>/dev/null
first=$(id_of first)
[ ${#first} -eq 26 ] || fail "not an id: $first"

# --- RUN
for which in "$first" "${first:0:4}" "${first:0:11}" first last "$(tr A-Z a-z <<<"${first:0:9}")"; do
	assert_eq "$first" "$(id_of "$which")" "show $which"
done
refuses 'no such run' 'a prefix that is too short' "$ASSURE" show "${first:0:3}"
refuses 'no such run' 'no run' "$ASSURE" tree ZZZZZZ
refuses 'no such run' 'no name' "$ASSURE" effects fir
refuses 'no such run' 'a path' "$ASSURE" show ../runs/"$first"
refuses 'no such run' 'an id and more' "$ASSURE" show "${first}0"
refuses 'no such run' 'nothing' "$ASSURE" show ''
# Two that begin alike, and one with the digits that look like letters.
runs=$ASSURE_HOME/runs
twin=${first:0:25}$([ "${first:25}" = 0 ] && echo 1 || echo 0)
cp -r "$runs/$first" "$runs/$twin"
refuses "$twin" 'an ambiguous prefix' "$ASSURE" show "${first:0:8}"
refuses "$first" 'an ambiguous prefix' "$ASSURE" show "${first:0:25}"
assert_eq "$first" "$(id_of "$first")" 'an id beside its twin'
gives 0 'rm of a twin' "$ASSURE" rm "$twin"
[ -d "$runs/$first" ] && [ ! -e "$runs/$twin" ] || fail 'rm of a twin'
assert_eq "$first" "$(id_of first)" 'the name, when the twin is gone'
cp -r "$runs/$first" "$runs/0110ABCDEFGHJKMNPQRSTVWXYZ"
for which in 0110 OIlo oilO OLLO 0iL0abcdef; do
	assert_eq 0110ABCDEFGHJKMNPQRSTVWXYZ "$(id_of $which)" "show $which"
done
gives 0 'rm by letters' "$ASSURE" rm oilo
traced --name second -- true
assert_eq "$(id_of second)" "$(id_of last)" 'last'
for name in last .x -x a/b 'a b' '' "$first" "$(printf 'a\nb')" "$(printf 'a\377')" "$(head -c 200 /dev/zero | tr '\0' n)"; do
	gives 64 "the name [$name]" "$ASSURE" trace --quiet --name "$name" -- touch touched
	assert_one_line "$(cat err)" "the name [$name]"
done
[ ! -e touched ] || fail 'a command ran under a name that cannot be'

# --- runs, show, tree
gives 0 runs "$ASSURE" runs
assert_eq 3 "$(wc -l <out)" "lines of runs: $(cat out)"
assert_contains "$(sed -n 2p out)" " complete .*\[second\] true" 'the newest first'
assert_contains "$(sed -n 3p out)" '\[first\] sh agent.sh' 'the oldest last'
gives 0 show "$ASSURE" show first
for pattern in "^run .*$first" '^name +first$' '^command +sh agent.sh' "^in +$PWD\$" '^ended +exit 0 \[(mediated|verifiable)\]$' '^lens +reads$' \
	' proc.exec$' ' file.create$' ' file.rename$' ' ok$' ' failed$'; do
	assert_contains "$(cat out)" "$pattern" show
done
gives 0 tree "$ASSURE" tree first
assert_contains "$(head -n 1 out)" 'sh agent.sh' tree
assert_contains "$(cat out)" "sh -c 'echo" 'tree: a child'
for command in show tree; do
	gives 0 "$command --json" "$ASSURE" $command --json first
	/usr/bin/python3 -c 'import json, sys; assert json.load(open("out"))["schema"] == sys.argv[1]' assure.$command/1 ||
		fail "$command --json"
done
ended=$(sed -E 's/.*"effects":([0-9]+).*/\1/' <<<"$(assure show first --json)")
assert_eq "$ended" "$(lines first)" 'as many lines as effects'
assert_eq "$ended" "$(lines first --json)" 'as many records as effects'

# --- what is shown of effects
all() { assure effects first --json "$@"; }
only() { # PATTERN WHAT ARGUMENT…: there are some, each matches, and no other effect does
	local pattern=$1 what=$2 wanted
	shift 2
	wanted=$(all | grep -cE -- "$pattern")
	[ "$wanted" -gt 0 ] || fail "$what: the run has none"
	assert_eq "$wanted" "$(all "$@" | grep -cE -- "$pattern")" "$what: those that match"
	assert_eq "$wanted" "$(all "$@" | wc -l)" "$what: all"
	assert_eq "$wanted" "$(lines first "$@")" "$what: lines"
}
only '"kind":"file.create"' '--kind exact' --kind file.create
for family in file 'file.' 'file.*'; do only '"kind":"file\.' "--kind $family" --kind "$family"; done
only '"state":"(failed|refused)"' --failed --failed
only '"kind":"dir\..*"state":"failed"' 'two filters' --failed --kind dir
pid=$(cat pid)
only "\"pid\":$pid,\"tid\":$pid}" --pid --pid "$pid"
assert_eq 0 "$(lines first --pid 999999999)" 'no such pid'
for kind in fil file.creat create 'file.create.x' '' '*' file.none; do
	gives 64 "--kind [$kind]" "$ASSURE" effects first --kind "$kind"
done
for pid in '' x -1 1x 99999999999; do gives 64 "--pid [$pid]" "$ASSURE" effects first --pid "$pid"; done

paths() { # GLOB: the last parts of the paths of what was created, sorted
	all --kind file.create --path "$1" | sed -E 's/.*"path(_b64)?":"([^"]*)","process.*/\2/; s:.*/::' | sort | tr '\n' ' '
}
assert_eq 'one.txt two.txt ' "$(paths '*.txt')" 'a pattern for the last part'
assert_eq 'two.txt ' "$(paths "$PWD/a/*/*.txt")" '* does not cross a slash'
assert_eq 'one.txt two.txt ' "$(paths "$PWD/**/*.txt")" '** does, also nothing'
assert_eq 'one.txt two.txt ' "$(paths "$PWD/a/**.txt")" '** inside a part'
assert_eq 'three.log two.txt ' "$(paths '**/a/b/**')" '** at both ends'
assert_eq 'three.log two.txt ' "$(paths 't[a-hw]*')" 'a set'
assert_eq 'two.txt ' "$(paths 't[!h]*')" 'a set that is not'
assert_eq 'one.txt ' "$(paths '[m-p]??.txt')" 'question marks'
assert_eq '' "$(paths 'ONE.TXT')" 'case counts'
for glob in "$bad" 'bad??' "$PWD/a/bad*" "**/ba[c-e]$(printf '\377')?"; do
	assert_eq 1 "$(all --kind file.create --path "$glob" | grep -c '"path_b64"')" "a name that is not UTF-8: $glob"
done
assert_eq 1 "$(lines first --kind file.create --path "$odd")" 'a name of two lines'
assert_eq 1 "$(lines first --kind file.rename --path moved.txt)" 'the second path counts'
assert_eq 1 "$(lines first --kind file.rename --path one.txt)" 'and the first'
assert_eq "$(all | grep -c '"path')" "$(all --path '**' | wc -l)" '** is all that have a path'
assert_eq 0 "$(lines first --path '')" 'no pattern, no path'

# --- nothing on the screen is the agent's to control
for command in 'effects first' 'tree first' 'show first' runs; do
	# shellcheck disable=SC2086 # words
	gives 0 "$command" "$ASSURE" $command
	! LC_ALL=C grep -qP '\x1b|\xff|\xe2\x80\xae' out || fail "$command: raw bytes in $(cat -v out)"
	# shellcheck disable=SC2086
	/usr/bin/python3 - "$ASSURE" $command <<'END' || fail "$command on a terminal"
import os, pty, sys
def shown(**more):
    os.environ.pop("NO_COLOR", None)
    os.environ.update(more)
    chunks = []
    def read(fd):
        chunks.append(os.read(fd, 65536))
        return chunks[-1]
    stdout = os.dup(1)
    os.dup2(os.open("/dev/null", os.O_WRONLY), 1)
    status = pty.spawn(sys.argv[1:], read, lambda fd: os.read(fd, 1))
    os.dup2(stdout, 1)
    assert status == 0, status
    return b"".join(chunks)
plain, coloured = shown(NO_COLOR="1"), shown()
assert b"\x1b" not in plain, plain
assert plain, "nothing"
assert b"\x1b[31mred" not in coloured and b"\xff" not in coloured, coloured
if sys.argv[2] != "tree":
    assert b"\x1b[" in coloured, coloured
END
done

# --- what cannot be written is not passed over
for command in 'runs' 'runs --json' 'show first' 'show first --json' 'tree first' 'tree first --json' 'effects first' \
	'effects first --json' 'doctor --json' version help 'help trace' 'gc --keep 99'; do
	# shellcheck disable=SC2086
	run timeout -s KILL 30 "$ASSURE" $command >/dev/full 2>err </dev/null
	assert_eq 'exit 1' "$STATUS" "$command to a full disk"
	assert_contains "$(cat err)" '^assure: .*No space left' "$command to a full disk"
	assert_one_line "$(cat err)" "$command to a full disk"
	# shellcheck disable=SC2086
	run timeout -s KILL 30 "$ASSURE" $command >&- 2>err </dev/null
	assert_eq 'exit 1' "$STATUS" "$command with stdout closed"
done
run bash -c '"$ASSURE" effects first --json | true; exit ${PIPESTATUS[0]}' 2>err
case $STATUS in 'exit 0' | 'exit 1' | 'exit 141') ;; *) fail "a reader that went away: $STATUS" ;; esac

# --- the command line
for command in trace runs show tree effects matrix verify receipt recover export import keys log rm gc doctor version help; do
	if [ $command != help ]; then
		gives 0 "help $command" "$ASSURE" help $command
		assert_contains "$(head -n 1 out)" "^usage: assure $command" "help $command"
		[ "$(wc -l <out)" -ge 3 ] || fail "help $command says nothing"
		cp out help
		gives 0 "$command --help" "$ASSURE" $command --help
		cmp -s out help || fail "$command --help differs from help $command"
		gives 64 "$command --nonsense" "$ASSURE" $command --nonsense
		assert_one_line "$(cat err)" "$command --nonsense"
	fi
	assert_contains "$("$ASSURE" help)" "^ +$command " 'the overview'
done
for arguments in '' nonsense 'help nonsense' '--nonsense' 'show' 'show first second' 'tree' 'effects' 'runs x' 'rm' gc \
	'gc --keep' 'gc --keep x' 'gc --older 5x' 'gc --max-size -1' 'gc --keep 1 x' 'version x' 'doctor x'; do
	# shellcheck disable=SC2086
	gives 64 "assure $arguments" "$ASSURE" $arguments
	assert_eq '' "$(cat out)" "assure $arguments: stdout"
done

# --- removing
"$ASSURE" trace --quiet --name busy -- sh -c 'echo ready >ready; exec sleep 60' </dev/null &
busy=$!
until [ -e ready ]; do sleep 0.05; done
refuses 'still running' 'rm of a running run' "$ASSURE" rm busy
assert_contains "$(assure runs)" ' running .*\[busy\]' 'a running run'
assert_contains "$(assure show busy)" '^ended +running' 'a running run'
gives 1 'rm of several' "$ASSURE" rm ZZZZZZ second
assert_one_line "$(cat err)" 'rm of several'
refuses 'no such run' 'what was removed' "$ASSURE" show second
[ ! -L "$ASSURE_HOME/names/second" ] || fail 'the name of a removed run is still there'
for i in 1 2 3 4; do traced --name "n$i" -- true; done
names() { assure runs | sed -nE 's/.*\[(.*)\].*/\1/p' | tr '\n' ' '; }
set_age() { sqlite3 "$runs/$(id_of "$1")/run.sqlite" "UPDATE meta SET value = value - $2 * 1000000000 WHERE key = 'started_ns'"; }
set_age n1 172900
set_age n2 90000
set_age busy 200000 2>/dev/null
assert_contains "$(names)" '^n4 n3 ' 'sorted by start'
gives 0 gc "$ASSURE" gc --older 3d
assert_contains "$(cat out)" '^removed 0 runs' gc
gives 0 gc "$ASSURE" gc --older 2d
assert_contains "$(cat out)" '^removed 1 run,' gc
[[ " $(names)" != *' n1 '* ]] || fail "gc --older: $(names)"
gives 0 gc "$ASSURE" gc --older 24h --keep 3
case "$(names)" in *n2*) ;; *) [ "$(names | wc -w)" -ge 3 ] || fail "gc --keep with --older: $(names)" ;; esac
size=$(assure runs --json | grep -oE '"name":"n4"[^}]*"size":[0-9]+' | grep -oE '[0-9]+$')
gives 0 gc "$ASSURE" gc --max-size $((size + size / 2))
assert_contains " $(names)" ' n4 ' 'gc --max-size keeps the newest'
[[ " $(names)" == *' busy '* && " $(names)" != *' n3 '* ]] || fail "gc --max-size: $(names)"
traced --name n5 -- true
gives 0 gc "$ASSURE" gc --keep 1
assert_contains " $(names)" ' n5 ' 'gc --keep'
[[ " $(names)" == *' busy '* && " $(names)" != *' n4 '* ]] || fail "gc --keep 1: $(names)"
gives 0 gc "$ASSURE" gc --keep 0
assert_eq 'busy ' "$(names)" 'gc --keep 0 leaves what runs'
kill -TERM $busy
wait $busy
gives 0 'rm of what has ended' "$ASSURE" rm busy
gives 0 'runs of none' "$ASSURE" runs --json
assert_eq '{"runs":[],"schema":"assure.runs/1"}' "$(cat out)" 'runs of none'
exit 0
