#!/bin/sh -eu
# A run in a run, with a store of its own and with the outer run's: either both work, or the inner one says that it
# cannot be where there is one already, and runs nothing.
nest() { # NAME
	status=0
	"$EV_ASSURE" trace --quiet -- sh -c 'echo text >f' 2>said || status=$?
	if [ $status = 0 ]; then
		[ -s f ]
		"$EV_ASSURE" effects last --json | grep -q "\"path\":\"$EV_DIR/f\""
	elif [ $status != 125 ] || [ -e f ] || ! grep -qE '^assure: .*(already|outside of)' said; then
		echo "$1: status $status, not clear: $(cat said)" >&2
		exit 1
	fi
	rm -f said f
	echo "did nest $1~$status"
}
outer=$ASSURE_HOME
ASSURE_HOME=$EV_PLACE/inner
nest own
rm -rf "$EV_PLACE/inner"
ASSURE_HOME=$outer
nest same
