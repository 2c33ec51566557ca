#!/usr/bin/env bash
# timeout: 180
# What a user does with sealed runs: verify, keys, the host log, receipts, recovery, bundles. What forgers do is in
# tests/ledger.
. "$(dirname "$0")/lib.sh"

verdict() { # WANTED-STATUS WHAT COMMAND…
	local wanted=$1 what=$2
	shift 2
	"$@" >out 2>err
	assert_eq "$wanted" "$?" "$what ($(cat out err))"
}
store() { printf '%s/runs/%s' "$ASSURE_HOME" "$(assure verify "$1" --json | sed -E 's/.*"run":"([^"]*)".*/\1/')"; }

# --- a run is sealed, and what verify says of it is true
traced --name good -- sh -c 'echo x >f; cat f >/dev/null; rm f' || fail 'trace'
verdict 0 'a sealed run' assure verify good
assert_contains "$(cat out)" '^run [0-9A-Z]{26}: intact and complete \[verifiable(, key exposed: same-uid)?\]$' 'the screen'
assert_contains "$(cat out)" 'same-uid' 'the limit that the host key lies where the traced user could read it'
if [ "$IDENTITY" = root ]; then
	assert_contains "$(cat out)" 'began as root' 'the limit of a tree of root'
fi
verdict 0 'as JSON' assure verify good --json
assert_contains "$(cat out)" '"complete":true.*"in_log":true.*"sealed":true,"store_covered":true,"verdict":"intact"' JSON
records=$(sqlite3 "$(store good)/run.sqlite" 'SELECT count(*) FROM records')
assert_contains "$(cat out)" "\"covered\":$records,.*\"records\":$records," 'all records are covered'
assert_eq "$(assure effects good --json | wc -l)" "$(sed -E 's/.*"effects":([0-9]*),.*/\1/' out)" 'effects'
traced --name screen -- true
"$ASSURE" trace -- true 2>err
assert_contains "$(cat err)" '^assure: sealed \[verifiable(, key exposed: same-uid)?\], [0-9]+ records, root [0-9a-f]{4}.*[0-9a-f]{4} . assure show .* assure verify' 'the end of a run'

# --- whose key
fingerprint=$(assure keys show --json | sed -E 's/.*"fingerprint":"([0-9a-f]{64})".*/\1/')
assure keys export >key || fail 'keys export'
verdict 0 'by fingerprint' assure verify good --key "$fingerprint"
verdict 0 'by a file' assure verify good --key key
other=$(printf '%064d' 7)
verdict 4 'by somebody else' assure verify good --key "$other"
verdict 64 'a key that is none' assure verify good --key nokey
verdict 3 'a run that is none' assure verify nosuchrun
assert_eq "600 $(id -u)" "$(stat -c '%a %u' "$ASSURE_HOME/keys/host.key")" 'the key file'
assert_eq 65 "$(stat -c %s "$ASSURE_HOME/keys/host.key")" 'the key file'

# --- a key that others could use is refused, and nothing runs
refuse_key() { # WHAT
	"$ASSURE" trace --quiet -- touch ran >out 2>err
	assert_eq 125 "$?" "$1 ($(cat err))"
	assert_contains "$(cat err)" 'host key' "$1"
	[ ! -e ran ] || fail "$1: the command ran"
}
chmod 644 "$ASSURE_HOME/keys/host.key"
refuse_key 'a key that others can read'
assert_contains "$(cat err)" 'used by others' 'the reason'
chmod 600 "$ASSURE_HOME/keys/host.key"
mv "$ASSURE_HOME/keys/host.key" kept
ln -s "$PWD/kept" "$ASSURE_HOME/keys/host.key"
refuse_key 'a symbolic link'
rm "$ASSURE_HOME/keys/host.key"
printf 'no key\n' >"$ASSURE_HOME/keys/host.key"
chmod 600 "$ASSURE_HOME/keys/host.key"
refuse_key 'a file that is no key'
mv kept "$ASSURE_HOME/keys/host.key"
chmod 750 "$ASSURE_HOME/keys"
refuse_key 'a folder that others can read'
chmod 700 "$ASSURE_HOME/keys"
if [ "$IDENTITY" = root ]; then
	chown 1 "$ASSURE_HOME/keys/host.key"
	refuse_key "another's key"
	chown 0 "$ASSURE_HOME/keys/host.key"
fi
verdict 0 'as before' assure verify good

# --- the host log
assure log head >head1 || fail 'log head'
verdict 0 'the log' assure log verify
traced --name later -- true
verdict 0 'the log goes on from an earlier head' assure log verify --since head1
assert_contains "$(cat out)" 'begins with the head' 'since'
assure keys rotate >out || fail 'rotate'
traced --name rotated -- true
verdict 0 'a run under the new key' assure verify rotated
verdict 0 'a run under the old key' assure verify good
verdict 4 'a run under the old key, by the new one' assure verify good \
	--key "$(assure keys show --json | sed -E 's/.*"fingerprint":"([0-9a-f]{64})".*/\1/')"
verdict 0 'the log with both' assure log verify --since head1
assert_eq 600 "$(stat -c %a "$ASSURE_HOME/keys/$fingerprint.old")" 'the old key is kept'
# Ended between telling the log and putting the key in place.
cp "$ASSURE_HOME/keys/host.key" before
assure keys rotate >/dev/null || fail 'rotate again'
cp "$ASSURE_HOME/keys/host.key" "$ASSURE_HOME/keys/next.key"
cp before "$ASSURE_HOME/keys/host.key"
traced -- true 2>err
assert_eq 125 "$?" 'a key that the log was told is gone'
assert_contains "$(cat err)" 'keys rotate' 'what to do'
assure keys rotate >/dev/null || fail 'the rest of a rotation'
traced --name after -- true || fail 'after the rest of a rotation'
verdict 0 'after the rest of a rotation' assure verify after
sed '2s/.*/1/' head1 >head2
verdict 3 'a head that is none' assure log verify --since /dev/null
verdict 1 'a head of another log' assure log verify --since head2
# A log that was replaced as a whole shows only to who kept a head.
cp -r "$ASSURE_HOME" replaced
rm -f replaced/log.sqlite* && rm -rf replaced/keys replaced/runs
ASSURE_HOME=$PWD/replaced traced -- true
for _ in 1 2 3 4 5; do ASSURE_HOME=$PWD/replaced traced -- true; done
verdict 0 'a log that was replaced, by itself' env ASSURE_HOME="$PWD/replaced" "$ASSURE" log verify
verdict 1 'a log that was replaced, against a head' env ASSURE_HOME="$PWD/replaced" "$ASSURE" log verify --since head1
sqlite3 replaced/log.sqlite "DELETE FROM entries WHERE seq = 3" || fail sqlite3
verdict 1 'an entry is missing' env ASSURE_HOME="$PWD/replaced" "$ASSURE" log verify

# --- many at once: each knows the key, and the log has them all
before=$(assure log verify --json | sed -E 's/.*"runs":([0-9]*),.*/\1/')
for i in 1 2 3 4 5 6 7 8; do traced --name "many$i" -- true & done
wait
for i in 1 2 3 4 5 6 7 8; do verdict 0 "run $i of eight at once" assure verify "many$i"; done
assert_eq $((before + 8)) "$(assure log verify --json | sed -E 's/.*"runs":([0-9]*),.*/\1/')" 'runs in the log'
# A host's first runs at once: one key.
for i in 1 2 3 4; do ASSURE_HOME=$PWD/fresh traced --name "first$i" -- true & done
wait
for i in 1 2 3 4; do verdict 0 "first run $i" env ASSURE_HOME="$PWD/fresh" "$ASSURE" verify "first$i"; done
verdict 0 'its log' env ASSURE_HOME="$PWD/fresh" "$ASSURE" log verify

# --- receipts, checked by nothing of ours but the tree's definition
assure receipt good 3 >receipt || fail 'receipt'
/usr/bin/python3 - receipt "$(store good)" <<'END' || fail "receipt: $(cat receipt)"
import base64, hashlib, pathlib, sqlite3, sys
head, checkpoint = pathlib.Path(sys.argv[1]).read_text().split("\n\n", 1)
lines = head.split("\n")
assert lines[0] == "c2sp.org/tlog-proof@v1" and lines[1].startswith("extra ") and lines[2] == "index 3", lines
record = base64.b64decode(lines[1][6:], validate=True)
stored = sqlite3.connect(f"file:{sys.argv[2]}/run.sqlite?immutable=1", uri=True).execute(
    "SELECT json FROM records WHERE seq = 3").fetchone()[0]
assert record == stored
assert checkpoint == pathlib.Path(sys.argv[2], "seal").read_text()
size, root = int(checkpoint.split("\n")[1]), base64.b64decode(checkpoint.split("\n")[2])
def node(left, right): return hashlib.sha256(b"\1" + left + right).digest()
def climb(index, size, proof, leaf):
    if size == 1:
        assert not proof
        return leaf
    split = 1 << (size - 1).bit_length() - 1
    if index < split:
        return node(climb(index, split, proof[:-1], leaf), proof[-1])
    return node(proof[-1], climb(index - split, size - split, proof[:-1], leaf))
proof = [base64.b64decode(line, validate=True) for line in lines[3:]]
assert climb(3, size, proof, hashlib.sha256(b"\0" + record).digest()) == root
END
verdict 1 'a receipt of no record' assure receipt good 100000
verdict 0 'the certificate' assure receipt --certificate good
assert_contains "$(cat out)" '"payloadType":"run-key".*"use":"ledger"' 'the certificate'

# --- a run whose scribe was killed: incomplete for ever, and recovered
"$ASSURE" trace --quiet --name killed -- sh -c 'i=0; while [ $i -lt 1500 ]; do : >f; i=$((i+1)); done; sleep 60' 2>err &
trace=$!
for _ in $(seq 100); do
	[ "$(assure effects killed --json 2>/dev/null | wc -l)" -gt 1200 ] && break
	sleep 0.1
done
verdict 2 'a run that goes on' assure verify killed
assert_contains "$(cat out)" 'still running' 'why'
verdict 1 'recover of a run that goes on' assure recover killed
scribe=$(pgrep -P "$trace" -x assure-scribe)
kill -9 "$scribe"
wait "$trace"
verdict 2 'a run without a seal' assure verify killed
assert_contains "$(cat out)" 'never sealed' 'why'
assert_contains "$(cat out)" 'of which [0-9 ]+ are signed|records' 'how far it is signed'
covered=$(assure verify killed --json | sed -E 's/.*"covered":([0-9]*),.*/\1/')
[ "$covered" -ge 1000 ] || fail "only $covered records are covered"
verdict 1 'export of a run without a seal' assure export killed --output killed.assure
[ ! -e killed.assure ] || fail 'a bundle of a run that was not sealed'
verdict 0 'recover' assure recover killed
verdict 2 'a recovered run' assure verify killed
assert_contains "$(assure verify killed --json)" "\"covered\":[0-9]+,.*\"recovered\":true" 'recovered'
verdict 1 'recover of a sealed run' assure recover killed
verdict 1 'recover of a complete run' assure recover good
verdict 0 'the log knows the recovery' assure log verify
verdict 2 'a recovered run, once more' assure verify killed

# --- bundles
assure export good --output good.assure || fail export
verdict 1 'over a file that is there' assure export good --output good.assure
assure export good --output - >piped.assure || fail 'export to a pipe'
cmp good.assure piped.assure || fail 'two bundles of one run differ'
verdict 0 'a bundle' assure verify good.assure
verdict 0 'elsewhere, with its key' env ASSURE_HOME="$PWD/elsewhere" "$ASSURE" verify good.assure --key key
verdict 4 'elsewhere, without' env ASSURE_HOME="$PWD/elsewhere" "$ASSURE" verify good.assure
assert_eq "$(assure effects good --json | sha256sum)" "$(assure effects ./good.assure --json | sha256sum)" 'effects of a bundle'
assert_eq "$(assure tree good)" "$(assure tree good.assure)" 'tree of a bundle'
assure show good.assure >out || fail 'show of a bundle'
verdict 0 'import' env ASSURE_HOME="$PWD/elsewhere" "$ASSURE" import good.assure
verdict 0 'an imported run' env ASSURE_HOME="$PWD/elsewhere" "$ASSURE" verify last --key key
verdict 1 'import twice' env ASSURE_HOME="$PWD/elsewhere" "$ASSURE" import good.assure
verdict 0 'a recovered run in a bundle: export' assure export killed --output killed.assure
verdict 2 'a recovered run in a bundle' assure verify killed.assure
head -c 1000 good.assure >cut.assure
verdict 1 'a bundle that was cut' assure verify cut.assure
{ cat good.assure; echo; } >longer.assure
verdict 1 'a bundle with something behind' assure verify longer.assure
: >empty.assure
verdict 1 'an empty bundle' assure verify empty.assure
verdict 3 'no bundle' assure verify missing.assure
assert_eq '' "$(find "${TMPDIR:-/tmp}" -maxdepth 1 -name 'assure-bundle-*' -user "$(id -un)")" 'what unpacking left behind'
