#!/bin/bash -eu
# A shell connects by itself: no program is run.
exec 5<>"/dev/tcp/127.0.0.1/$EV_OUTSIDE_TCP"
echo text >&5
echo "did connect tcp"
exec 6<>"/dev/udp/127.0.0.1/$EV_OUTSIDE_UDP"
echo text >&6
echo "did connect udp"
