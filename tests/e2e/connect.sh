#!/usr/bin/env bash
# timeout: 180
# Connections and bindings end as they do natively, and what is recorded is where they led.
. "$(dirname "$0")/lib.sh"
calls=$PROGRAMS/connect_calls
waits=$PROGRAMS/connect_waits
binds=$PROGRAMS/bind_calls
for program in "$calls" "$waits" "$binds"; do
	[ -x "$program" ] || fail "$program is not built"
done

# same NAME COMMAND…: natively and traced, in fresh folders; ports of the traced run are in ./told.
same() {
	local name=$1 kind
	shift
	for kind in native traced; do
		mkdir -p "$origin/$name.$kind"
		cd "$origin/$name.$kind" || fail "no folder"
		if [ $kind = native ]; then
			"$@" >out 2>&1 3>told || fail "$name natively: $(cat out)"
		else
			traced -- "$@" >out 2>&1 3>told || fail "$name traced: $(cat out)"
		fi
	done
	cmp -s ../"$name.native/out" out || fail "$name differs: $(diff ../"$name.native/out" out)"
}
port() { sed -n "s/^$1 //p" told; }
connected() { assert_effect --count "$1" kind=net.connect syscall=connect how=performed "${@:2}"; }

same blocking "$calls" blocking
to=$(port blocking)
connected 3 peer.port="$to" peer.address=127.0.0.1 peer.family=inet peer.protocol=tcp result.state=ok
connected 2 peer.port="$to" result.errno=EISCONN result.state=failed
connected 1 peer.port="$(port blocking-refused)" result.errno=ECONNREFUSED result.state=failed
assert_effect --none kind=net.connect args.returned?

same without_waiting "$calls" without_waiting
to=$(port nonblocking)
connected 1 peer.port="$to" result.state=ok args.returned=EINPROGRESS result.errno!
connected 1 peer.port="$to" result.state=ok args.returned!
connected 1 peer.port="$to" result.state=failed result.errno=EISCONN
to=$(port nonblocking-refused)
connected 2 peer.port="$to" result.state=unknown args.returned=EINPROGRESS result.errno!
connected 1 peer.port="$to" result.state=failed result.errno=ECONNREFUSED

same full "$waits"
to=$(port full)
connected 2 peer.port="$to" result.state=failed result.errno=EALREADY
# Those that nobody waits for, and those that the agent's own call waits for.
assert_effect --at-least 1 kind=net.connect peer.port="$to" how=performed result.state=unknown args.returned=EINPROGRESS
connected 5 peer.port="$to" result.state=unknown args.returned!
# On a connection that is under way already, and with a time limit.
assert_effect --count 5 kind=net.connect peer.port="$to" how=observed result.state=unknown

same six "$calls" six
if ! grep -q 'no IPv6' out; then
	to=$(port six)
	connected 2 peer.port="$to" peer.family=inet6 peer.address=::1 peer.protocol=tcp result.state=ok
	connected 1 peer.port="$to" peer.family=inet result.state=failed
	connected 1 peer.port="$to" peer.family=inet6 result.errno=ECONNREFUSED
fi

same datagrams "$calls" datagrams
connected 1 peer.port="$(port udp)" peer.protocol=udp result.state=ok
connected 1 peer.address=255.255.255.255 peer.protocol=udp result.errno=EACCES
connected 2 peer.port="$(port dissolved)" result.state=ok
assert_effect --none kind=net.connect peer.family=unspec

same lengths "$calls" lengths
# Too long ones are refused as what they are, without a look at what they say.
assert_effect --at-least 2 kind=net.connect how=performed args.addrlen=129 result.errno=EINVAL
assert_effect --at-least 2 kind=net.bind how=performed args.addrlen=4294967295 result.errno=EINVAL

same pointers "$calls" pointers
assert_effect --at-least 3 kind=net.connect how=observed result.state=unknown peer!

same credentials "$calls" credentials
assert_effect --count 1 kind=ipc.connect how=observed
assert_effect --count 1 kind=node.create "path=$PWD/credentials" how=verified result.state=ok

same own_table "$calls" own_table

# What another thread writes into the address changes neither where the connection leads nor what is said of it.
same race "$calls" race
for what in connect bind; do
	case $what in connect) end=peer ;; bind) end=local ;; esac
	# Ports of listeners are the kernel's choice: they were bound with none.
	assert_effect --at-least 200 syscall=$what how=performed result.state=ok "$end.port!=0" --print "$end.port" >recorded.$what
done
sed -n 's/^connected //p' told | cmp -s - recorded.connect || fail 'connections led elsewhere than was recorded'
sed -n 's/^bound //p' told | cmp -s - recorded.bind || fail 'sockets are bound to another port than was recorded'
[ "$(sort -u recorded.connect | wc -l)" = 2 ] || skip_part 'the address did not change in time'

same bind "$binds" all
performed() { assert_effect --count "$1" syscall=bind kind=net.bind how=performed "${@:2}"; }
any=$(port any)
performed 1 local.port=0 local.address=127.0.0.1 local.protocol=tcp args.bound_port="$any" result.state=ok
performed 1 local.port="$any" result.errno=EADDRINUSE args.bound_port!
performed 1 local.port="$any" local.protocol=udp result.state=ok args.bound_port!
performed 1 local.address=192.0.2.1 result.errno=EADDRNOTAVAIL
if [ "$IDENTITY" = root ]; then
	performed 1 local.port=81 result.state=ok
else
	performed 1 local.port=81 result.errno=EACCES
fi
performed 1 local.family=unix "local.path=$(port chosen)" result.state=ok
performed 1 "local.path=$(port abstract)" result.state=ok
performed 1 "local.path=$(port abstract)" result.errno=EADDRINUSE
assert_effect --count 1 kind=node.create "path=$PWD/file" "local.path=$PWD/file" how=verified result.state=ok type=socket
assert_effect --count 1 kind=node.create "path=$PWD/file" how=verified result.errno=EADDRINUSE
assert_effect --count 1 kind=node.create "path=$PWD/other" how=verified result.state=ok type=socket

# Who has other rights than ours acts with its own.
others=()
if [ "$IDENTITY" = root ]; then
	usable setpriv --reuid 65534 --regid 65534 --clear-groups true &&
		others=(setpriv --reuid 65534 --regid 65534 --clear-groups)
else
	usable unshare -Ur true && others=(unshare -Ur)
fi
if [ ${#others[@]} -gt 0 ]; then
	same other_rights "${others[@]}" "$binds" all
	assert_effect --count 1 syscall=bind how=verified local.port=81 result.errno=EACCES
	assert_effect --none syscall=bind how=performed
	same other_connects "${others[@]}" "$calls" blocking
	assert_effect --none syscall=connect how=performed
	assert_effect --at-least 5 syscall=connect how=observed result.state=unknown
else
	skip_part 'other rights than ours (they cannot be had here)'
fi

# Nothing is done for anybody who asked for that.
traced --results verify -- "$calls" blocking >out 2>&1 3>told || fail "--results verify: $(cat out)"
cmp -s out "$origin/blocking.native/out" || fail "--results verify: $(cat out)"
assert_effect --none syscall=connect how=performed
assert_effect --none syscall=bind how=performed

# A name in the file system is made by the kernel, from the agent's memory: what is recorded is what the socket got.
same bind_race "$binds" race
assert_effect --count 200 kind=node.create syscall=bind how=verified result.state=ok --print path >recorded
sed -n "s|^made |$PWD/|p" told | cmp -s - recorded || fail 'names are other ones than was recorded'
[ "$(sort -u recorded | wc -l)" = 2 ] || skip_part 'the name did not change in time'
exit 0
