#!/bin/sh -eu
# A descriptor that the caller opened is written; nothing is opened here.
echo text >&9
echo 'did write descriptor=9'
