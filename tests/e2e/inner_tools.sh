#!/usr/bin/env bash
# timeout: 180
# Debuggers, tracers and sandboxes work inside a traced tree.
. "$(dirname "$0")/lib.sh"

normal() { sed -E 's/process [0-9]+/process N/g; s/0x[0-9a-f]+/ADDRESS/g; s/pid [0-9]+/pid N/g'; }

tool() { # NAME SCRIPT: only where it works natively
	if usable sh -euc "cd '$TMPDIR'; $2"; then
		same_outcome "$1" "$2"
	else
		skip_part "$1 does not work here without us either, as $IDENTITY"
		return 1
	fi
}

tool gdb "gdb -nx -batch -ex 'set debuginfod enabled off' -ex 'break main' -ex run -ex kill /usr/bin/true 2>/dev/null | tail -1; echo done" &&
	assert_effect kind=proc.trace
tool gdb-run "gdb -nx -batch -ex run --args sh -c 'echo x >f; exit 3' 2>/dev/null | grep -E 'exited'; cat f" &&
	assert_effect kind=file.create "path=$PWD/gdb-run/w/f"
tool strace "strace -f -o /dev/null sh -c 'true; echo x >f; (exit 2)' || echo \$?" &&
	assert_effect kind=file.create "path=$PWD/strace/w/f"
tool bwrap "bwrap --ro-bind / / --bind \$PWD \$PWD --unshare-pid --proc /proc --dev /dev sh -c 'echo x >f; echo \$\$'" &&
	assert_effect kind=file.create "path=$PWD/bwrap/w/f"
tool unshare "unshare -Ur sh -c 'id -u; echo x >f'" && {
	assert_effect kind=priv.namespace
	assert_effect kind=file.create "path=$PWD/unshare/w/f"
}
tool unshare-mount "unshare -Urm sh -c 'mount -t tmpfs none /mnt; echo x >/mnt/f; cat /mnt/f'; ls -A /mnt" && {
	assert_effect kind=mount.change
	assert_effect kind=file.create path=/mnt/f
}
tool chroot "unshare -Ur chroot / sh -c 'echo x >$TMPDIR/in-root'" && assert_effect kind=priv.root
tool timeout "timeout 0.2 sleep 5 || echo \$?"
tool script "script -qec 'tty >/dev/null; echo hello' /dev/null"
tool setpriv "setpriv --no-new-privs sh -c 'grep ^NoNewPrivs /proc/self/status'"

if [ "$IDENTITY" = root ]; then
	tool drop "setpriv --reuid=65534 --regid=65534 --clear-groups sh -c 'id; cat /etc/shadow 2>/dev/null || echo no; touch f 2>/dev/null || echo no'" &&
		assert_effect kind=priv.ids
	# A setuid program keeps its right: root sets the filter without no_new_privs.
	cp "$(command -v id)" "$TMPDIR/setuid-id"
	chmod 4755 "$TMPDIR/setuid-id"
	chmod 755 "$TMPDIR" "$TMPDIR/.."
	tool setuid "test \"\$(setpriv --reuid=65534 --regid=65534 --clear-groups $TMPDIR/setuid-id -u)\" = 0"
	# The kernel takes it away from a tracee whose tracer lacks CAP_SYS_PTRACE: without it nobody may be the tracer.
	got=$(setpriv --bounding-set=-sys_ptrace --inh-caps=-sys_ptrace "$ASSURE" trace --quiet -- \
		setpriv --reuid=65534 --regid=65534 --clear-groups "$TMPDIR/setuid-id" -u)
	assert_eq 0 "$got" 'setuid where we have no CAP_SYS_PTRACE'
else
	skip_part 'setuid programs and dropped ids (needs root)'
fi
exit 0
