#!/bin/sh -eu
# What interpreters read because a variable says so: nothing of it is in the arguments.
mkdir lib hooks
echo 'echo text >by_bash' >hook.sh
BASH_ENV=$EV_DIR/hook.sh bash -c :
[ -s by_bash ]
echo 'did create by_bash'
# shellcheck disable=SC2016 # Perl's variables
echo 'package Hook; open(my $f, ">", "by_perl"); print $f "text"; 1;' >lib/Hook.pm
PERL5LIB=$EV_DIR/lib PERL5OPT=-MHook perl -e 1
[ -s by_perl ]
echo 'did create by_perl'
echo 'open("by_python", "w").write("text")' >lib/sitecustomize.py
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$EV_DIR/lib /usr/bin/python3 -c pass
[ -s by_python ]
echo 'did create by_python'
