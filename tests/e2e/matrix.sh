#!/usr/bin/env bash
# timeout: 120
# What the matrix says of a run is what that run had: one thing is changed at a time, and the rows that it is about change.
. "$(dirname "$0")/lib.sh"

# saved NAME [RUN]: the matrix of that run (of the build without one) in NAME.json.
saved() {
	"$ASSURE" matrix ${2:+"$2"} --json >"$1.json" || fail "matrix ${2:-} --json"
}
# told NAME EXPRESSION: of the matrix `d` in NAME.json; `r` are its rows by identifier, and state(ID), facts(ID), gaps(ID).
told() {
	/usr/bin/python3 -c '
import json, sys
d = json.load(open(sys.argv[1] + ".json"))
r = {row["id"]: row for row in d["rows"]}
def state(i): return r[i]["state"] + " " + r[i].get("class", "-")
def facts(i): return [limit["fact"] for limit in r[i]["limits"] if limit["fact"] not in ("privileged", "exposed")]
def gaps(i): return {gap["code"]: gap["count"] for gap in r[i]["gaps"]}
print(eval(sys.argv[2]))' "$1" "$2"
}
# changed NAME OTHER: identifiers of rows whose state, class, facts or gaps differ.
changed() {
	/usr/bin/python3 -c '
import json, sys
a, b = ({row["id"]: row for row in json.load(open(name + ".json"))["rows"]} for name in sys.argv[1:])
assert list(a) == list(b), "other rows"
print(*(i for i in a if any(a[i].get(k) != b[i].get(k) for k in ("state", "class", "limits", "gaps"))))' "$1" "$2"
}
contains_each() { # LIST WHAT ID…
	local list=" $1 " what=$2 id
	shift 2
	for id; do
		case $list in *" $id "*) ;; *) fail "$what: $id is the same: $list" ;; esac
	done
}
export SCHEMAS=$here/schemas
class=mediated
[ "$IDENTITY" != root ] || class=verifiable

# --- the build
saved build
assert_eq True "$(told build 'd["schema"] == "assure.matrix/1" and "run" not in d')" 'the build'
assert_eq 'captured mediated' "$(told build 'state("opens")')" 'what is here'
assert_eq 'not_captured -' "$(told build 'state("writes")')" 'what never is'
assert_eq 'not_in_this_release external' "$(told build 'state("scitt")')" 'what is not in this release'
assert_eq '[]' "$(told build '[i for i in r if r[i]["state"] == "captured" and r[i]["class"] == "external"]')" \
	'nobody off this host signs anything'
assert_eq '[]' "$(told build '[i for i in r if not all(r[i][k] for k in ("bypass", "proves", "proves_not", "boundary"))]')" \
	'claims without their bypass'
for id in hooks cloud_witness mcp transcripts approvals policy leases scitt; do
	assert_eq not_in_this_release "$(told build "r['$id']['state']")" "$id"
done

# --- each row is on both screens, with its state, in 80 columns
traced --name plain -- sh -c 'echo x >f; cat f >g' || fail 'the plain run'
saved plain plain
"$ASSURE" matrix >build.txt || fail matrix
"$ASSURE" matrix plain >plain.txt || fail 'matrix plain'
for screen in build plain; do
	/usr/bin/python3 - $screen <<'END' || fail "the screen of $screen: $(cat $screen.txt)"
import json, os, pathlib, sys
name = sys.argv[1]
text = pathlib.Path(name + ".txt").read_text()
words = " ".join(text.split())
rows = json.load(open(name + ".json"))["rows"]
schema = json.loads((pathlib.Path(os.environ["SCHEMAS"]) / "matrix-1.json").read_text())
listed = schema["properties"]["rows"]["items"]["properties"]["id"]["enum"]
assert [row["id"] for row in rows] == listed, set(listed) ^ {row["id"] for row in rows}
shown = {"captured": "captured", "partly": "in part", "not_captured": "not captured",
         "not_in_this_release": "not in this release"}
lines = text.split("\n")
assert all(len(line) <= 80 for line in lines), [line for line in lines if len(line) > 80]
assert "\033" not in text
for row in rows:
    event = " ".join(row["event"].split())
    if name == "build":  # the event, and what it is below it
        at = words.index(event + " " + shown[row["state"]])
        following = words[at:at + 2000]
        keys = ["proves_not"] + (["bypass", "proves", "signed_with"] if row["state"] == "captured" else [])
        for key in keys:
            assert " ".join(row[key].split()) in following, (row["id"], key)
    else:  # one line, which may go on below
        first = event.split()[0]
        found = [line for line in lines if line.startswith(shown[row["state"]] + " ") and f" {first}" in line]
        assert any(event.startswith(" ".join(line[42:].split())) for line in found), (row["id"], found)
        if "class" in row:
            assert " ".join(row["bypass"].split()) in words, row["id"]
            assert any(f" {row['class']} " in line for line in found), (row["id"], found)
END
done
assert_eq "$("$ASSURE" matrix)" "$(NO_COLOR=1 script -qec 'stty cols 80; "$ASSURE" matrix' /dev/null </dev/null 2>/dev/null | tr -d '\r')" \
	'NO_COLOR on a terminal'

# --- JSON is what its schema says, and nothing else
/usr/bin/python3 - build plain <<'END'
import json, os, pathlib, sys
try:
    import jsonschema
except ImportError:
    print("skip: the schema (the module jsonschema is not there)")
    sys.exit()
schema = json.loads((pathlib.Path(os.environ["SCHEMAS"]) / "matrix-1.json").read_text())
def closed(node):
    if isinstance(node, list):
        return [closed(item) for item in node]
    if not isinstance(node, dict):
        return node
    node = {key: closed(value) for key, value in node.items()}
    if isinstance(node.get("properties"), dict) and node.get("type") == "object":
        node["additionalProperties"] = False
    return node
strict = jsonschema.Draft202012Validator(closed(schema))
for name in sys.argv[1:]:
    text = pathlib.Path(name + ".json").read_text()
    document = json.loads(text)
    strict.validate(document)
    if json.dumps(document, ensure_ascii=False, separators=(",", ":"), sort_keys=True) + "\n" != text:
        sys.exit(f"FAIL: {name} is not canonical")
    for broken in ({**document, "rows": document["rows"][1:]}, {**document, "more": 1},
                   {**document, "rows": [{**document["rows"][0], "state": "seen"}, *document["rows"][1:]]}):
        if strict.is_valid(broken):
            sys.exit(f"FAIL: the schema accepts what is none")
END
[ $? = 0 ] || fail 'the schema'

# --- what the run had
assert_eq "captured $class" "$(told plain 'state("opens")')" 'opens'
assert_eq "partly $class" "$(told plain 'state("reads")')" 'reads by default'
assert_eq "partly $class" "$(told plain 'state("mappings")')" 'mappings by default'
assert_eq "captured verifiable" "$(told plain 'state("seal")')" 'the seal is no more than verifiable'
assert_eq 'not_in_this_release -' "$(told plain 'state("hooks")')" 'a run has none of what is not in this release'
assert_eq '2 0' "$(told plain 'str(r["opens"]["effects"]) + " " + str(r["opens"]["refused"])')" 'files that were made'
assert_eq True "$(told plain 'all(sum(row["by_how"].values()) == row["effects"] for row in d["rows"] if "effects" in row)')" \
	'effects by how they are known'
counted=$("$ASSURE" effects plain --json | wc -l)
assert_eq "$counted" "$(told plain 'sum(row.get("effects", 0) for row in d["rows"])')" 'each effect is in one row'

# --- the lens
traced --name changes --lens changes -- true
traced --name all --lens all -- true
saved changes changes
saved all all
assert_eq 'reads mappings' "$(changed plain all)" 'lens all'
assert_eq "captured $class" "$(told all 'state("reads")')" 'reads under lens all'
assert_eq "captured $class" "$(told all 'state("mappings")')" 'mappings under lens all'
assert_eq 'reads' "$(changed plain changes)" 'lens changes'
assert_eq "not_captured - ['lens']" "$(told changes 'state("reads") + " " + str(facts("reads"))')" 'reads under lens changes'
assert_contains "$("$ASSURE" matrix changes | grep -A 1 'files opened for reading$')" '--lens reads' 'the lens is named'

# --- who makes the calls
traced --name verify --results verify -- true
traced --name none --results none -- true
saved verify verify
saved none none
assert_eq "not_captured -" "$(told verify 'state("races")')" 'races when the kernel makes the calls'
assert_eq "captured ['not_performed']" "$(told verify 'r["opens"]["state"] + " " + str(facts("opens"))')" 'opens when verified'
assert_eq "partly ['not_performed', 'no_results']" "$(told none 'r["opens"]["state"] + " " + str(facts("opens"))')" \
	'opens without results'
contains_each "$(changed verify none)" 'without results' opens names attributes times mounts programs servers identity

# --- io_uring
traced --name allowed --io-uring allow -- true
saved allowed allowed
assert_eq 'io_uring' "$(changed plain allowed)" 'io_uring is allowed'
assert_eq 'not_captured -' "$(told allowed 'state("io_uring")')" 'io_uring is allowed'

# --- a gap, and what was refused: a path that cannot be read, numbers that the table does not know, and a ring
cat >odd.py <<'END'
import ctypes
libc = ctypes.CDLL(None)
for _ in range(3):
    libc.syscall(2, 8, 0, 0)  # open of a bad address
libc.syscall(0x40000002, 8, 0, 0)
libc.syscall(600, 1)
libc.syscall(425, 1, ctypes.create_string_buffer(120))
END
traced --name odd -- /usr/bin/python3 -S -E odd.py
traced --name ring --io-uring allow -- /usr/bin/python3 -S -E odd.py
saved odd odd
assert_eq 'opens reads' "$(changed plain odd)" 'a gap of open'
assert_eq "partly {'memory': 3}" "$(told odd 'r["opens"]["state"] + " " + str(gaps("opens"))')" 'a gap of open'
assert_eq '{}' "$(told odd 'gaps("names")')" 'a gap of open is none of names'
assert_contains "$("$ASSURE" matrix odd)" '^ +not seen +memory .3$' 'the gap on the screen'
assert_eq '2 1 0' "$(told odd '" ".join(str(r[i]["refused"]) for i in ("foreign_calls", "io_uring", "kernel"))')" refusals
assert_contains "$("$ASSURE" matrix odd)" '^captured +[a-z]+ +2 +2 +calls of 32-bit' 'refusals on the screen'
saved ring ring
if [ "$(told ring '"io_uring" in gaps("io_uring")')" = True ]; then
	contains_each "$(changed odd ring)" 'a ring was made' io_uring opens names connections descriptors
	assert_eq '{}' "$(told ring 'gaps("programs")')" 'a ring runs no programs'
	assert_contains "$("$ASSURE" matrix ring)" '^state +incomplete: .*io_uring' 'the state of the run'
else
	skip_part 'io_uring that is used (this kernel gave none)'
fi

# --- births
ASSURE_PROBES=connector=missing traced --name marks -- true
saved marks marks
assert_eq "partly $class ['marks']" "$(told marks 'state("births") + " " + str(facts("births"))')" 'births from marks'
if [ "$(told plain 'd["run"]["births"]')" = connector ]; then
	assert_eq 'programs births' "$(changed plain marks)" 'births from marks'
	assert_eq "captured $class" "$(told plain 'state("births")')" 'births from the connector'
else
	skip_part 'births from the connector (there is none here)'
fi

# --- who ran it, and who has the key
assert_eq "$(id -u) $class" "$(told plain 'str(d["run"]["uid"]) + " " + d["run"]["class"]')" 'the user'
assert_eq same-uid "$(told plain 'd["run"]["key_exposed"]')" 'the key'
assert_eq True "$(told plain 'all(row.get("key_exposed") == "same-uid" for row in d["rows"] if "class" in row)')" \
	'the key, beside each claim'
assert_contains "$("$ASSURE" matrix plain)" '^key exposed +same-uid$' 'the key on the screen'
if [ "$IDENTITY" = root ]; then
	mkdir -m 700 theirs
	chown 65534:65534 theirs
	chmod a+x . .. ../..
	as_user=(setpriv --reuid 65534 --regid 65534 --clear-groups env "ASSURE_HOME=$PWD/theirs" "$ASSURE")
	if usable "${as_user[@]}" trace --quiet --name theirs -- true; then
		"${as_user[@]}" matrix theirs --json >theirs.json || fail 'the run of another user'
		assert_eq '65534 mediated' "$(told theirs 'str(d["run"]["uid"]) + " " + d["run"]["class"]')" 'another user'
		contains_each "$(changed plain theirs)" 'another user' opens names programs connections
		assert_eq 'captured mediated' "$(told theirs 'state("opens")')" 'another user'
	else
		fail 'tracing as another user'
	fi
fi

# --- a run whose scribe is killed, and which is then recovered; and a bundle
"$ASSURE" trace --quiet --name killed -- sh -c ': >begun; sleep 60' 2>err &
trace=$!
for _ in $(seq 200); do
	[ -e begun ] && "$ASSURE" matrix killed --json >killed.json 2>/dev/null && break
	sleep 0.05
done
assert_eq "running ['not_sealed']" "$(told killed 'd["run"]["state"] + " " + str(facts("seal"))')" 'a run that goes on'
kill -9 "$(pgrep -P "$trace" -x assure-scribe)"
wait "$trace"
saved killed killed
assert_eq "incomplete partly ['not_sealed']" \
	"$(told killed 'd["run"]["state"] + " " + r["seal"]["state"] + " " + str(facts("seal"))')" 'a run without a seal'
assure recover killed >/dev/null || fail recover
saved killed killed
assert_eq "['not_sealed', 'recovered']" "$(told killed 'facts("seal")')" 'a recovered run'
assure export plain --output plain.assure >/dev/null || fail export
saved bundle "$PWD/plain.assure"
cmp -s plain.json bundle.json || fail "a bundle: $(diff plain.json bundle.json | head -c 2000)"

# --- what a run says is believed only as far as it goes: records are changed, which nothing but verify would notice
# forged NAME SQL: a copy of the plain run in which SQL was done.
forged() {
	mkdir -p forged/runs
	chmod 700 forged
	local id
	id=$(told plain 'd["run"]["id"]')
	rm -rf "forged/runs/$id"
	cp -r "$ASSURE_HOME/runs/$id" forged/runs/
	/usr/bin/python3 - "forged/runs/$id/run.sqlite" "$2" <<'END' || fail "forging $1"
import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as store:
    assert store.execute(sys.argv[2]).rowcount == 1
END
	ASSURE_HOME=$PWD/forged "$ASSURE" matrix "$id" --json >"$1.json" || fail "matrix of a forged run: $1"
	ASSURE_HOME=$PWD/forged "$ASSURE" matrix "$id" >"$1.txt" || fail "screen of a forged run: $1"
}
replaced() { # FROM TO TYPE
	printf "UPDATE records SET json = CAST(replace(CAST(json AS TEXT), '%s', '%s') AS BLOB) WHERE type = '%s'" "$@"
}
forged back_end "$(replaced '"notify"' '"other"' assure.run/1)"
assert_eq 'True' "$(told back_end 'all(r[i]["state"] != "captured" for i in r)')" 'an unknown back end'
forged lens "$(replaced '"lens":"reads"' '"lens":"newer"' assure.run/1)"
assert_eq 'not_captured -' "$(told lens 'state("reads")')" 'an unknown lens is the least'
forged class "$(replaced '"class":"'$class'"' '"class":"telemetry"' assure.run/1)"
assert_eq "['telemetry']" "$(told class 'sorted({row["class"] for row in d["rows"] if "class" in row})')" \
	'a claim is worth no more than the run'
forged class "$(replaced '"class":"'$class'"' '"class":"external"' assure.run/1)"
assert_eq False "$(told class '"external" in {row.get("class") for row in d["rows"]}')" 'nor more than its row'
forged seal "DELETE FROM records WHERE type = 'assure.seal/1'"
assert_eq "partly ['not_sealed']" "$(told seal 'r["seal"]["state"] + " " + str(facts("seal"))')" 'a run without its seal'
forged incomplete "$(replaced '"complete":true' '"complete":false' assure.seal/1)"
assert_eq "partly ['not_sealed']" "$(told incomplete 'r["seal"]["state"] + " " + str(facts("seal"))')" 'an incomplete run'
forged escape "$(replaced '"births":"' '"births":"\u001b[31m' assure.run/1)"
assert_contains "$(cat escape.txt)" '^births +\\x1[bB]\[31m' 'what a run says is escaped'
[ "$(grep -c "$(printf '\033')" escape.txt)" = 0 ] || fail 'a control character reached the screen'
for at in births_lost:births process_limit:births; do
	gap=$(printf '{"class":"mediated","code":"%s","count":7,"lane":"kernel","mono_ns":1,"schema":"assure.gap/1","seq":1,"time":"2026-01-01T00:00:00.000000000Z"}' "${at%:*}")
	forged gap "UPDATE records SET type = 'assure.gap/1', kind = NULL, how = NULL, state = NULL, json = CAST('$gap' AS BLOB) WHERE seq = 1"
	assert_eq "partly {'${at%:*}': 7}" "$(told gap "r['${at#*:}']['state'] + ' ' + str(gaps('${at#*:}'))")" "a gap ${at%:*}"
	assert_eq '{}' "$(told gap 'gaps("names")')" "a gap ${at%:*} is about births alone"
done
for code in vanished store newer; do
	forged gap "UPDATE records SET type = 'assure.gap/1', kind = NULL, how = NULL, state = NULL, json = CAST('${gap/process_limit/$code}' AS BLOB) WHERE seq = 1"
	assert_eq 'set()' "$(told gap '{i for i in r if r[i]["state"] == "captured"}')" "a gap $code could be about any row"
done

# --- mistakes
run "$ASSURE" matrix nothing >out 2>err
assert_eq 'exit 1' "$STATUS" 'no such run'
assert_one_line "$(cat err)" 'no such run'
run "$ASSURE" matrix plain odd >out 2>err
assert_eq 'exit 64' "$STATUS" 'two runs'

exit 0
