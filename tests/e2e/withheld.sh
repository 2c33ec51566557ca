#!/usr/bin/env bash
# Secrets never reach the disk: neither those that are known by their looks or by the user's patterns, nor what the agent had in
# its environment, input, output and files.
. "$(dirname "$0")/lib.sh"

# Put together here, so that the command line of this script does not hold them.
token=ghp_$(printf '%036d' 7)
key=sk-ant-api03-$(printf 'k%.0s' {1..30})
mkdir "dir-$token" && echo "of a file: marked-content" >input

# absent WHERE WORD…: none of them is in any file of the state folder, in whatever form it is stored.
absent() {
	local where=$1 word
	shift
	for word; do
		! grep -raqF -- "$word" "$ASSURE_HOME" || fail "$where: [$word] is in $(grep -ralF -- "$word" "$ASSURE_HOME" | head -1)"
		! grep -raqF -- "$(printf %s "$word" | base64 -w0 | cut -c1-20)" "$ASSURE_HOME" || fail "$where: [$word] is there in Base64"
	done
}

MARKED=marked-environment "$ASSURE" trace --quiet --redact 'hunter[0-9]+' --redact '(?i)codename \w+' -- sh -c '
	cat input - >output
	cp output "dir-$0/copy"
	sh -c "exit 0" sh --password "marked-option" "hunter12 and CodeName Zebra" "http://user:marked-url@host/?key=marked-query"
	sh -c "exit 0" sh "Authorization: Bearer marked-bearer" "$1" "PGPASSWORD=marked-assignment"
	cat "/nonexistent/$1" 2>/dev/null
	rm "dir-$0/copy"
	exit 3' "$token" "$key" <<<'marked-input'
assert_eq 3 $? 'the status of the command'
absent 'a run' "$token" "$key" marked-environment marked-content marked-input marked-option hunter12 Zebra marked-url marked-query \
	marked-bearer marked-assignment codename
assert_eq 'of a file: marked-content' "$(head -1 output)" 'what the command wrote'

assert_effect kind=file.create "path~/dir-\\[withheld:github-token\\]/copy\$" result.state=ok 'withheld.0=github-token'
assert_effect kind=file.delete "path~/dir-\\[withheld:github-token\\]/copy\$" result.state=ok
assert_effect kind=proc.exec 'argv.4=--password' 'argv.5=[withheld:option]' 'argv.6=[withheld:pattern] and [withheld:pattern]'
assert_effect kind=proc.exec 'argv.4=Authorization: [withheld:authorization]' 'argv.5=[withheld:anthropic-key]' \
	'argv.6=PGPASSWORD=[withheld:password]'
assert_effect --none 'kind=proc.exec' 'argv.0=cp' 'argv.2~ghp_'
assure show last | grep -q 'withheld:github-token' || fail 'show does not say what was withheld of the command'
assure verify last >/dev/null || fail "verify: $?"
assure export last --output bundle >/dev/null || fail 'export'
! grep -aqF -e "$token" -e "$key" bundle || fail 'a secret is in the bundle'

# A name that is no UTF-8 is stored in another form, and nothing else of it.
"$ASSURE" trace --quiet -- sh -c 'mkdir "$1" && rmdir "$1"' sh $'\xff'"$token" </dev/null || fail "trace: $?"
absent 'a name of other bytes' "$token"
assert_effect 'kind=dir.create' 'withheld.0=github-token' path_b64?

# What is no secret is whole.
"$ASSURE" trace --quiet -- sh -c 'mkdir sk-learn-contrib-examples-of-everything "token=file"' </dev/null || fail "trace: $?"
assert_effect 'kind=dir.create' 'path~/sk-learn-contrib-examples-of-everything$' 'withheld!'
assert_effect 'kind=dir.create' 'path~/token=file$' 'withheld!'

"$ASSURE" trace --redact '(' -- true 2>err </dev/null
assert_eq 64 $? 'a pattern that is none'
grep -q 'regular expression 1 is wrong at byte 1' err || fail "a pattern that is none: $(cat err)"
exit 0
