#!/usr/bin/env bash
# What doctor says is what trace then finds; and what ASSURE_PROBES takes away is missed in the way that was said.
. "$(dirname "$0")/lib.sh"

# field EXPRESSION: of the JSON object `d` in the file `json`; `p` are its probes by id.
field() {
	/usr/bin/python3 -c '
import json, sys
d = json.load(open("json"))
p = {row["id"]: row for row in d["probes"]}
print(eval(sys.argv[1]))' "$1"
}

# --- this host
run "$ASSURE" doctor >out 2>err </dev/null
assert_eq '' "$(cat err)" 'doctor: stderr'
doctor_status=$STATUS
run "$ASSURE" trace --quiet -- true
assert_eq "$STATUS" "$doctor_status" "doctor and trace of this host ($(cat out))"
assert_eq 'exit 0' "$doctor_status" "doctor ($(cat out))"
assert_contains "$(tail -n 1 out)" '^trace will work here; births: (connector|marks)' 'last line'
assert_eq '' "$(grep -vE '^(ok|missing|unknown|note) |^trace will| (follows|to do):' out)" 'lines of another form'

run "$ASSURE" doctor --json >json 2>err </dev/null
assert_eq 'exit 0' "$STATUS" "doctor --json ($(cat err))"
assert_eq 1 "$(wc -l <json)" 'one line of JSON'
assert_eq 'assure.doctor/1 True' "$(field 'd["schema"] + " " + str(d["ok"])')" 'JSON'
assert_eq '[]' "$(field '[i for i, row in p.items() if row["required"] and row["state"] != "ok"]')" 'required ones'
assert_eq True "$(field 'd["births"] == ("connector" if p["connector"]["state"] == "ok" else "marks")')" 'births'
assert_eq True "$(field 'p["kernel"]["detail"].startswith("Linux '"$(uname -r)"' ")')" 'kernel'
assert_eq "['detail', 'follows', 'id', 'name', 'purpose', 'required', 'state', 'todo']" \
	"$(field 'sorted(set().union(*d["probes"]))')" 'fields of a probe'

# --- a run's first record says it too: all but what only a stopped call shows
start_record() { # of the newest run, into the file `start`
	/usr/bin/python3 - <<'EOF'
import glob, os, sqlite3
newest = max(glob.glob(os.path.join(os.environ["ASSURE_HOME"], "runs", "*", "run.sqlite")), key=os.path.getmtime)
(body,) = sqlite3.connect(newest).execute("SELECT json FROM records WHERE seq = 0").fetchone()
open("start", "w").write(body if isinstance(body, str) else body.decode())
EOF
}
cat >compare.py <<'EOF'
import json
found = {row["id"]: row for row in json.load(open("json"))["probes"]}
first = json.load(open("start"))
said = {row["id"]: row for row in first["probes"]}
assert set(found) - set(said) == {"receive", "memory", "answer", "capture"}, set(found) ^ set(said)
assert len(said) == len(first["probes"])
for name, row in said.items():
    assert row["state"] == found[name]["state"], (row, found[name])
    assert row.get("follows") == (found[name]["follows"] if row["state"] == "missing" else None), row
    if name != "connector":
        assert row.get("detail", found[name]["detail"]) == found[name]["detail"], (row, found[name])
assert said["user_namespaces"].get("detail") and said["seccomp"].get("detail"), said
assert (first["births"] == "connector") == (said["connector"]["state"] == "ok"), said
assert first["environment_added"] == first["flags_added"] == [], first
EOF
container=podman "$ASSURE" doctor --json >json 2>err </dev/null || fail 'doctor in a container'
container=podman "$ASSURE" trace --quiet -- true || fail 'trace in a container'
start_record
/usr/bin/python3 compare.py || fail "the first record of a run and doctor ($(cat start))"
for taken in openat2 connector seccomp; do
	ASSURE_PROBES=$taken=missing "$ASSURE" doctor --json >json || fail "doctor without $taken"
	ASSURE_PROBES=$taken=missing "$ASSURE" trace --quiet -- true || fail "trace without $taken"
	start_record
	/usr/bin/python3 compare.py || /usr/bin/python3 - "$taken" <<'EOF' || fail "without $taken ($(cat start))"
import json, sys
said = {row["id"]: row for row in json.load(open("start"))["probes"]}
assert said[sys.argv[1]]["state"] == "missing" and said[sys.argv[1]]["follows"], said
EOF
done
"$ASSURE" doctor --json >json || fail 'doctor once more'

# --- looking changes nothing
[ -z "$(find "$ASSURE_HOME" -name '.*doctor*')" ] || fail 'doctor left something in the state folder'
ASSURE_HOME=$PWD/none/state "$ASSURE" doctor >/dev/null || fail 'doctor without a state folder'
[ ! -e none ] || fail 'doctor made a state folder'

# --- what is taken away
for probe in $(field '" ".join(i for i, row in p.items() if row["required"])'); do
	run env "ASSURE_PROBES=$probe=missing" "$ASSURE" doctor >out 2>err </dev/null
	assert_eq 'exit 1' "$STATUS" "doctor without $probe"
	assert_contains "$(tail -n 1 out)" '^trace will not work here: ' "doctor without $probe"
	assert_eq 1 "$(grep -c '^missing ' out)" "missing without $probe"
	assert_eq 1 "$(grep -A 2 '^missing ' out | grep -c ' follows: ')" "what follows without $probe"
	assert_eq 1 "$(grep -A 2 '^missing ' out | grep -c ' to do: ')" "what to do without $probe"
	run timeout -s KILL 20 env "ASSURE_PROBES=$probe=missing" "$ASSURE" trace --quiet -- touch touched \
		>out 2>err </dev/null
	assert_eq 'exit 125' "$STATUS" "trace without $probe ($(cat err))"
	assert_one_line "$(cat err)" "trace without $probe"
	assert_contains "$(cat err)" '^assure: ' "trace without $probe"
done
[ ! -e touched ] || fail 'the command ran although something required is missing'
run env ASSURE_PROBES=kernel=missing "$ASSURE" trace -- true 2>err </dev/null
assert_eq 'exit 125' "$STATUS" 'trace on an old kernel'
assert_one_line "$(cat err)" 'trace on an old kernel'
assert_contains "$(cat err)" '5\.19' 'trace on an old kernel'

# --- nothing can be made to be there
ASSURE_PROBES=kernel=ok,connector=,nonsense "$ASSURE" doctor >/dev/null || fail 'other words in ASSURE_PROBES'

# --- without a connector a run goes on, by marks
export ASSURE_PROBES=connector=missing
run "$ASSURE" doctor --json >json 2>err </dev/null
assert_eq 'exit 0' "$STATUS" 'doctor without connector'
assert_eq marks "$(field 'd["births"]')" 'births without connector'
run "$ASSURE" doctor >out </dev/null
assert_contains "$(tail -n 1 out)" 'births: marks' 'last line without connector'
run "$ASSURE" trace --quiet -- sh -c 'echo x >f; (setsid sh -c "echo y >g"); exit 3' 2>err </dev/null
assert_eq 'exit 3' "$STATUS" "trace without connector ($(cat err))"
assert_effect kind=file.create "path=$PWD/f" result.state=ok
assert_effect kind=file.create "path=$PWD/g" result.state=ok
unset ASSURE_PROBES

# --- inside a run: another listener is there already, and doctor says so
run "$ASSURE" trace --quiet -- "$ASSURE" doctor >out 2>err </dev/null
assert_eq 'exit 1' "$STATUS" "doctor inside a run ($(cat err))"
assert_contains "$(grep '^missing *seccomp listener' out)" 'another supervisor' 'doctor inside a run'

# --- no /proc: an answer too
if usable unshare -Urm mount -t tmpfs none /proc; then
	run unshare -Urm sh -c 'mount -t tmpfs none /proc && exec timeout -s KILL 40 "$ASSURE" doctor' >out 2>err </dev/null
	assert_eq 'exit 1' "$STATUS" "doctor without /proc ($(cat err))"
	assert_contains "$(cat out)" '^missing */proc .*proc file system' 'doctor without /proc'
else
	skip_part 'doctor without /proc (there are no user namespaces for us)'
fi

# --- bytes of a path reach the terminal escaped
odd=$PWD/$'odd\e[31m'
ASSURE_HOME=$odd "$ASSURE" doctor >out || fail 'doctor with an odd state folder'
assert_contains "$(cat out)" 'odd\\x1[bB]' 'an odd state folder'
! grep -q $'\e' out || fail 'an escape sequence of a path reached the output'

# --- descriptors, wrong usage
run bash -c 'ulimit -n 512; exec "$ASSURE" doctor' >out 2>err </dev/null
assert_eq 'exit 0' "$STATUS" 'doctor with few descriptors'
assert_contains "$(cat out)" '^missing *descriptor limit *hard limit 512' 'doctor with few descriptors'
for arguments in '--nonsense' 'extra'; do
	run "$ASSURE" doctor "$arguments" >out 2>err </dev/null
	assert_eq 'exit 64' "$STATUS" "doctor $arguments"
done
exit 0
