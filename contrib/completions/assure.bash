# Completion of assure(1) for bash.
# shellcheck shell=bash

_assure_runs() {
	# A run is the first word of a line that begins with an identifier.
	assure runs 2>/dev/null | awk '$1 ~ /^[0-9A-HJKMNP-TV-Z]{4,26}$/ { print $1 } END { print "last" }'
}

_assure() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]:-} words='' i
	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		words='trace runs show tree effects matrix verify receipt recover export import keys log rm gc doctor version help'
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
		return
	fi
	if [ "$command" = trace ]; then
		# From the traced command on its own completion goes on.
		i=2
		while [ $i -lt "$COMP_CWORD" ]; do
			case ${COMP_WORDS[i]} in
			--lens | --results | --wait | --name | --hash | --io-uring | --redact | --passphrase-fd) i=$((i + 2)) ;;
			--) i=$((i + 1)); break ;;
			-*) i=$((i + 1)) ;;
			*) break ;;
			esac
		done
		if [ $i -lt "$COMP_CWORD" ] || { [ $i -eq "$COMP_CWORD" ] && [ "${word:0:1}" != - ]; }; then
			if declare -F _command_offset >/dev/null; then
				_command_offset $i
			else
				mapfile -t COMPREPLY < <(compgen -c -f -- "$word")
			fi
			return
		fi
	fi
	case $command/$before in
	trace/--lens) words='changes reads all' ;;
	trace/--results) words='perform verify none' ;;
	trace/--wait) words='tree main' ;;
	trace/--hash) words='images' ;;
	trace/--io-uring) words='deny allow' ;;
	export/--format) words='bundle intoto' ;;
	trace/--name | export/--redact | effects/--kind | effects/--path | effects/--pid | gc/--*) ;;
	trace/*) words='--lens --results --wait --name --quiet --hash --io-uring --redact --passphrase-fd --' ;;
	verify/--key | log/--since | export/--output | import/*) mapfile -t COMPREPLY < <(compgen -f -- "$word") && return ;;
	effects/effects | verify/verify | receipt/receipt | matrix/matrix | export/export | recover/* | show/* | tree/* | rm/*)
		words=$(_assure_runs)
		;;
	verify/*) words='--key --json' ;;
	receipt/*) words='--certificate' ;;
	matrix/*) words='--json' ;;
	export/*) words='--output --format --redact --passphrase-fd' ;;
	keys/keys) words='init show export rotate seal unseal' ;;
	keys/*) words='--passphrase-fd --json' ;;
	log/log) words='head verify' ;;
	log/*) words='--since --json' ;;
	effects/*) words='--kind --path --pid --failed --json' ;;
	gc/*) words='--older --keep --max-size' ;;
	doctor/*) words='--json' ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -F _assure assure
