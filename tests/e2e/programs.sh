#!/usr/bin/env bash
# timeout: 300
# Real programs have the same outcome natively and traced: status, output, and the tree that they leave.
. "$(dirname "$0")/lib.sh"

export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.invalid GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@example.invalid
export GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00:00Z'
export GIT_CONFIG_NOSYSTEM=1 NO_COLOR=1 npm_config_update_notifier=false

# git's index holds inode numbers and times.
normal() { grep -vE '(^|/| )(\.git/)?index [0-9a-f]{64}$' || true; }
same_outcome git 'git init -q -b main a; cd a; echo one >f; mkdir d; echo two >d/g; git add .; git commit -qm first
	echo more >>f; git commit -qam second; git log --oneline; git status --short; cd ..
	git clone -q a b; cd b; git log --format=%H; git checkout -qb side; git mv f h; git commit -qm moved; git diff --stat main'
assert_effect kind=file.create "path=$PWD/git/w/a/f" result.state=ok
assert_effect kind=file.rename "to.path~/a/\.git/index\$" result.state=ok
assert_effect kind=proc.exec 'path~/git$' argv.1=clone result.state=ok

normal() { cat; }
same_outcome make 'cat >Makefile <<\M
all: p
p: a.o b.o c.o
	gcc -o $@ a.o b.o c.o
%.o: %.c h.h
	gcc -c -o $@ $<
M
	echo "int a(void); int b(void);" >h.h
	printf "#include \"h.h\"\nint a(void){return 1;}\n" >a.c
	printf "#include \"h.h\"\nint b(void){return 2;}\n" >b.c
	printf "#include \"h.h\"\nint main(void){return a()+b()-3;}\n" >c.c
	make -s -j3; ./p; make -s; touch h.h; make -s; ls'
assert_effect --count 1 kind=proc.exec argv.0=./p result.state=ok
assert_effect --at-least 3 kind=proc.exec 'path~/cc1$' result.state=ok
assert_effect kind=file.delete 'path~/cc\w+\.s$' result.state=ok

same_outcome tar 'mkdir -p t/u; for i in 1 2 3 4 5 6 7 8 9; do echo $i >t/u/$i; done; ln -s u/1 t/link; ln t/u/2 t/hard; chmod 600 t/u/3
	tar --sort=name --mtime=@0 -cf t.tar t; tar -czf t.tgz -C t u && rm t.tgz; mkdir x; tar -xf t.tar -C x; diff -r t x/t; tar -tf t.tar'
assert_effect kind=file.symlink "path=$PWD/tar/w/x/t/link" to.text=u/1 result.state=ok
assert_effect kind=file.link 'result.state=ok' 'to.path~/x/t/'
assert_effect --at-least 8 kind=file.create 'path~/x/t/u/\d$' result.state=ok

same_outcome sqlite 'sqlite3 d.db "PRAGMA journal_mode=WAL; CREATE TABLE t(a); INSERT INTO t VALUES(1),(2); SELECT sum(a) FROM t;"
	sqlite3 e.db "CREATE TABLE t(a); BEGIN; INSERT INTO t VALUES(3); COMMIT; VACUUM; SELECT * FROM t;"; sqlite3 e.db "PRAGMA integrity_check"'
assert_effect kind=file.create "path=$PWD/sqlite/w/d.db"
assert_effect kind=file.delete "path=$PWD/sqlite/w/e.db-journal" result.state=ok

same_outcome venv '/usr/bin/python3 -m venv --without-pip v; v/bin/python -c "import sys, json; print(sys.prefix != sys.base_prefix)"'
assert_effect kind=proc.exec 'path~/v/bin/python$' result.state=ok
assert_effect kind=file.create "path=$PWD/venv/w/v/pyvenv.cfg" result.state=ok

same_outcome python '/usr/bin/python3 - <<\P
import concurrent.futures, multiprocessing, os, shutil, subprocess, tempfile
with tempfile.TemporaryDirectory(dir=".") as d:
    os.rename(shutil.copy("/etc/hostname", d + "/a"), d + "/b")
print(subprocess.run(["sh", "-c", "exit 4"]).returncode)
with multiprocessing.get_context("fork").Pool(3) as pool:
    print(sum(pool.map(abs, range(-20, 0))))
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    print(sum(pool.map(lambda n: subprocess.run(["true"]).returncode, range(40))))
P'
assert_effect --count 40 kind=proc.exec argv.0=true result.state=ok

same_outcome node 'node -e "
const {spawnSync, execFileSync} = require(\"child_process\"), fs = require(\"fs\");
fs.writeFileSync(\"f\", \"x\"); fs.renameSync(\"f\", \"g\"); fs.mkdirSync(\"d/e\", {recursive: true});
console.log(spawnSync(\"sh\", [\"-c\", \"exit 6\"]).status, execFileSync(\"echo\", [\"hi\"]).toString().trim());
console.log(spawnSync(\"sh\", [\"-c\", \"kill -TERM \$\$\"]).signal, spawnSync(\"nonexistent-command\").error.code);
fs.promises.writeFile(\"h\", \"y\").then(() => console.log(fs.readFileSync(\"h\", \"utf8\")));
"'
assert_effect kind=file.rename "path=$PWD/node/w/f" "to.path=$PWD/node/w/g" result.state=ok
assert_effect kind=file.create "path=$PWD/node/w/h" result.state=ok

normal() { sed -E 's/in [0-9.]+m?s$/in N/'; }
same_outcome npm 'mkdir dep app; echo "{\"name\":\"dep\",\"version\":\"1.0.0\",\"bin\":{\"dep\":\"d.js\"}}" >dep/package.json
	printf "#!/usr/bin/env node\nconsole.log(\"dep\")\n" >dep/d.js; chmod 755 dep/d.js; cd app
	echo "{\"name\":\"app\",\"version\":\"1.0.0\",\"scripts\":{\"test\":\"dep\"}}" >package.json
	npm install --offline --no-audit --no-fund ../dep; npm test --silent'
assert_effect kind=file.symlink "path=$PWD/npm/w/app/node_modules/dep" to.text=../../dep result.state=ok
assert_effect kind=file.create 'path~/app/package-lock\.json'

same_outcome agent "'$FIXTURES/sample-agent' >/dev/null"
assert_effect kind=dir.create result.state=ok
exit 0
