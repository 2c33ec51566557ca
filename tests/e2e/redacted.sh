#!/usr/bin/env bash
# timeout: 120
# A bundle for others: what is withheld from it is nowhere in it, the rest can be read and verified, and it says what it is.
# What forgers do is in tests/ledger.
. "$(dirname "$0")/lib.sh"

verdict() { # WANTED-STATUS WHAT COMMAND…
	local wanted=$1 what=$2
	shift 2
	"$@" >out 2>err </dev/null
	assert_eq "$wanted" "$?" "$what ($(cat out err))"
}
# absent FILE WORD…: in no form in which it is stored
absent() {
	local file=$1 word
	shift
	for word; do
		! grep -aqiF -- "$word" "$file" || fail "[$word] is in $file"
		! grep -aqF -- "$(printf %s "$word" | base64 -w0 | cut -c1-10)" "$file" || fail "[$word] is in $file in Base64"
	done
}

mkdir stage
export TMPDIR=$PWD/stage
"$ASSURE" trace --quiet --name of-zebra -- sh -c '
	mkdir project-Zebra; echo x >project-Zebra/hunter7; mv project-Zebra/hunter7 project-Zebra/f
	sh -c "exit 0" sh --name "ZEBRA crossing"; mkdir "$1"; rmdir "$1"; true' sh $'\xffzebra' </dev/null || fail "trace: $?"
verdict 0 export assure export of-zebra --output zebra.assure --redact '(?i)zebra' --redact 'hunter[0-9]'
verdict 0 'the run as it is' assure verify of-zebra
cp "$(echo "$ASSURE_HOME"/runs/*/run.sqlite)" store
grep -aqi zebra store || fail 'the run has what is to be withheld: the test tests nothing'
absent zebra.assure zebra Zebra ZEBRA hunter7

verdict 0 'a redacted bundle' assure verify zebra.assure
assert_contains "$(cat out)" ' [0-9]+ records redacted by the exporter: their content is vouched for by the host' 'it is said'
assert_contains "$(cat out)" 're-signed by host key' 'and by whom it is signed'
verdict 0 'as JSON' assure verify zebra.assure --json
assert_contains "$(cat out)" '"redacted":[1-9].*"verdict":"intact"' JSON
assert_eq "$(assure verify of-zebra --json | sed -E 's/.*"root":"([^"]*)".*/\1/')" "$(sed -E 's/.*"root":"([^"]*)".*/\1/' out)" \
	'the root is that of the run'
verdict 4 'by nobody who was named' assure verify zebra.assure --key "$(printf '%064d' 7)"

# --- it is read as a run is
verdict 0 show assure show zebra.assure
assert_contains "$(cat out)" 'of-\[withheld:pattern\]' 'its name'
verdict 0 effects assure effects zebra.assure --json
assert_eq "$(assure effects of-zebra --json | wc -l)" "$(wc -l <out)" 'all effects are there'
grep '"kind":"dir.create"' out | grep -q '"path":"[^"]*/project-\[withheld:pattern\]".*"withheld":\["pattern"\]' ||
	fail "a folder: $(grep dir.create out)"
verdict 0 tree assure tree zebra.assure
absent out zebra hunter7

# --- what was too long for a record is withheld whole, or is there whole
long=$(printf 'x%.0s' {1..70000})
"$ASSURE" trace --quiet --name long -- sh -c '/bin/true "$0" hidden-zebra; exec /bin/true "$0"' "$long" </dev/null || fail "trace: $?"
verdict 0 'of a run with blobs' assure export long --output long.assure --redact zebra
absent long.assure zebra
verdict 0 'with blobs' assure verify long.assure
assure effects long --json >before && assure effects long.assure --json >after || fail effects
assert_eq 3 "$(grep -c '"blobs":{' before)" 'execs that have one'
assert_eq 1 "$(grep -c '"blobs":{' after)" 'one of them names nothing that is to be withheld'
digest=$(grep -o '"digest":"sha256:[0-9a-f]*' after | cut -d: -f3)
assure show long --blob "$digest" >whole && assure show long.assure --blob "$digest" | cmp -s - whole || fail 'it is there whole'

# --- and goes no further
verdict 1 import assure import zebra.assure
verdict 1 'export again' assure export zebra.assure --output again.assure
verdict 1 'to attest it' assure export zebra.assure --format intoto --output again.jsonl
verdict 1 'a receipt of what was redacted' assure receipt zebra.assure 0
[ ! -e again.assure ] && [ ! -e again.jsonl ] || fail 'an export that failed left a file'

# --- what does not match, all paths, what would take for ever, and what cannot be
verdict 0 'nothing matches' assure export of-zebra --output none.assure --redact 'no such word'
verdict 0 'nothing was redacted' assure verify none.assure --json
assert_contains "$(cat out)" '"redacted":0,' 'none'
verdict 0 'all paths' assure export of-zebra --output paths.assure --redact '/.*'
verdict 0 'all paths' assure verify paths.assure
verdict 0 'an expression that takes too long' assure export of-zebra --output slow.assure --redact '(z*e*b*r*a*)*(Z|E)*!' --redact zebra
verdict 0 'an expression that takes too long' assure verify slow.assure
verdict 1 "the host's name, which is signed" assure export of-zebra --output host.assure --redact '.+'
assert_contains "$(cat err)" "host's name" 'why'
verdict 64 'a pattern that is none' assure export of-zebra --output wrong.assure --redact '('
verdict 64 'with attestations' assure export of-zebra --output wrong.assure --format intoto --redact x
# --- by a key under a passphrase
echo 'open, sesame' >phrase
assure keys seal --passphrase-fd 3 3<phrase >out || fail "keys seal: $(cat out)"
verdict 1 'nobody to ask' assure export of-zebra --output wrong.assure --redact zebra
verdict 0 'a bundle as it is needs no key' assure export of-zebra --output plain.assure
assure export of-zebra --output sealed.assure --redact zebra --passphrase-fd 3 3<phrase || fail 'with the passphrase'
verdict 0 'with the passphrase' assure verify sealed.assure
assure export of-zebra --output sealed.jsonl --format intoto --passphrase-fd 3 3<phrase || fail 'an attestation with the passphrase'
verdict 0 'an attestation with the passphrase' assure verify sealed.jsonl
[ ! -e host.assure ] && [ ! -e wrong.assure ] || fail 'an export that failed left a file'
[ -z "$(ls -A stage)" ] || fail "left behind: $(ls -A stage stage/*)"
exit 0
