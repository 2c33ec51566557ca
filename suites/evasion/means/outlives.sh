#!/bin/sh -eu
# The command is done at once; a process with a session of its own is not, and is not told that the command is.
setsid nohup sh -c 'sleep 0.7; echo text >f; echo "did create f late~$$"' </dev/null 2>/dev/null &
echo 'did leave'
