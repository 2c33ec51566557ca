#!/usr/bin/env bash
# What is too long for a record is in the store whole, named by it, and nowhere with a secret in it.
. "$(dirname "$0")/lib.sh"

token=ghp_$(printf '%036d' 7)
long=$(printf 'x%.0s' {1..100000})
assure trace --quiet -- sh -c '/bin/true "$0" "$1" '"$(seq -s ' ' 9000)" "$long" "$token$long" </dev/null || fail "trace: $?"

digest=$(/usr/bin/python3 "$here/effects.py" --print blobs.argv.digest kind=proc.exec "argv.0=/bin/true") || fail "no blob"
assert_effect kind=proc.exec 'argv.0=/bin/true' argv_total=9003 args.cut.0=argv
assure show last --blob "$digest" >whole || fail "show --blob: $?"
assert_eq "${digest#sha256:}" "$(sha256sum <whole | cut -d' ' -f1)" 'the digest of what is shown'
assert_eq 9003 "$(tr -dc '\0' <whole | wc -c)" 'how many arguments there are'
tr '\0' '\n' <whole >lines
assert_eq /bin/true "$(sed -n 1p lines)" 'the first one'
assert_eq "$long" "$(sed -n 2p lines)" 'the long one'
assert_eq "[withheld:github-token]" "$(sed -n 3p lines)" 'the one that is a secret'
assert_eq 9000 "$(sed -n '$p' lines)" 'the last one'
assure effects last --kind proc.exec | grep -q -- "--blob $(printf %.12s "${digest#sha256:}")" || fail 'effects does not say where the rest is'
assure show last --blob "$(printf %.8s "${digest#sha256:}")" | cmp -s - whole || fail 'the first digits do not do'

# The run's own command line is one as well, and the same one as that of its first exec.
named=$(assure effects last --json | head -1 | grep -o '"blobs":{"argv":{"bytes":[0-9]*,"digest":"[^"]*"') || fail 'the first exec has no blob'
/usr/bin/python3 - "$ASSURE_HOME"/runs/*/run.sqlite "$named" <<'END' || fail "the run's record names another blob than its first exec"
import sqlite3, sys
record, = sqlite3.connect(sys.argv[1]).execute("SELECT json FROM records WHERE seq = 0").fetchone()
sys.exit(sys.argv[2] not in record.decode())
END
assure verify last >verified || fail "verify: $(cat verified)"
assure export last --output bundle || fail 'export'
assure show ./bundle --blob "$digest" | cmp -s - whole || fail 'the bundle has not the blob'
! grep -raqF "$token" "$ASSURE_HOME" bundle || fail 'a secret is on the disk'

run "$ASSURE" show last --blob abcd0123 2>err
assert_eq 'exit 1' "$STATUS" 'a blob that is not there'
assert_one_line "$(cat err)" 'a blob that is not there'
run "$ASSURE" show last --blob xyz 2>err
assert_eq 'exit 1' "$STATUS" 'what is no digest'

exit 0
