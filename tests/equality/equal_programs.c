/*
 * Programs that are started: files that are run and written at once, searches that fail, descriptors and ids across
 * exec, and the ordinary tools doing their ordinary work.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/xattr.h>

#include "equal.h"

static void copy_file(const char *from, const char *to)
{
	static char block[65536];
	int source = open(from, O_RDONLY), target = open(to, O_WRONLY | O_CREAT | O_EXCL, 0755);
	ssize_t size;

	NEED(source >= 0 && target >= 0);
	while ((size = read(source, block, sizeof(block))) > 0)
		NEED(write(target, block, (size_t)size) == size);
	close(source);
	close(target);
}

static void programs_busy(void)
{
	int ready[2];

	copy_file("/bin/sleep", "program");
	NEED(pipe2(ready, O_CLOEXEC) == 0);
	pid_t pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		execl("program", "program", "30", NULL);
		_exit(EQUAL_BROKEN);
	}
	close(ready[1]);
	NEED(read(ready[0], &(char){0}, 1) == 0);
	step(open("program", O_WRONLY), "write");
	step(open("program", O_WRONLY | O_TRUNC), "truncate by open");
	step(open("program", O_RDONLY | O_TRUNC), "truncate by a read-only open");
	step(open("program", O_RDWR | O_CREAT, 0755), "create");
	step(open("program", O_WRONLY | O_CREAT | O_EXCL, 0755), "exclusive");
	step(truncate("program", 0), "truncate");
	STEP_CLOSE(open("program", O_RDONLY), "read");
	step(chmod("program", 0700), "chmod");
	step(rename("program", "moved"), "rename");
	step(link("moved", "linked"), "link");
	step(open("linked", O_WRONLY), "write by the link");
	step(unlink("linked"), "unlink");
	kill(pid, SIGTERM);
	join_child("program", pid);
	int fd = (int)step(open("moved", O_WRONLY), "write when it has ended");
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		step(execl("moved", "moved", "0", NULL), "run what is open for writing");
		_exit(0);
	}
	join_child("second", pid);
	close(fd);
	NEED(unlink("moved") == 0);
}

static pid_t start_shell(const char *text)
{
	/* that a parent waits in vfork while its child makes calls is what this is about */
	/* NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.vfork): see above */
	pid_t pid = vfork();

	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", text, NULL);
		_exit(EQUAL_BROKEN);
	}
	NEED(pid > 0);
	return pid;
}

static void programs_vfork(void)
{
	char text[160];

	for (int i = 0; i < 10; i++) {
		snprintf(text, sizeof(text), "umask 0%d2; echo %d > written-%d; mkdir made-%d", i % 8, i, i, i);
		join_child("shell", start_shell(text));
		snprintf(text, sizeof(text), "written-%d", i);
		facts_of(text);
	}
}

static void programs_failing(void)
{
	static char *const none[] = {NULL};
	char *const arguments[] = {(char[]){"x"}, NULL};
	static char huge[200000];
	char *const much[] = {huge, NULL};

	make_file("no-format", 0755, "\x01\x02\x03 nothing that can be run");
	make_file("empty", 0755, "");
	make_file("not-executable", 0644, "#!/bin/sh\n");
	make_file("no-interpreter", 0755, "#!/absent/interpreter\n");
	make_file("interpreter-loop", 0755, "#!./interpreter-loop\n");
	make_folder("folder", 0755);
	NEED(symlink("loop", "loop") == 0 && symlink("not-executable", "link") == 0);
	memset(huge, 'h', sizeof(huge) - 1);
	const struct {
		const char *name;
		char *const *arguments;
	} calls[] = {{"absent", arguments},
		     {"not-executable", arguments},
		     {"no-format", arguments},
		     {"empty", arguments},
		     {"loop", arguments},
		     {"folder", arguments},
		     {"not-executable/x", arguments},
		     {"no-interpreter", arguments},
		     {"interpreter-loop", arguments},
		     {"link", arguments},
		     {"/bin/true", much},
		     {"", arguments},
		     {NULL, arguments}};
	for (int round = 0; round < 80; round++) {
		for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
			long result = syscall(SYS_execve, calls[i].name, calls[i].arguments, none);
			int error = errno;
			if (round == 0)
				step(result, "%s", calls[i].name ? calls[i].name : "NULL");
			else if (result != -1 || error == 0)
				say("round %d: %s", round, calls[i].name);
		}
		/* and still everything else works */
		if (round % 20 == 0) {
			NEED(mkdir("between", 0755) == 0 && rmdir("between") == 0);
		}
	}
	step(syscall(SYS_execveat, AT_FDCWD, "", arguments, none, AT_EMPTY_PATH), "execveat of cwd");
	step(syscall(SYS_execveat, -1, "x", arguments, none, 0), "execveat of nothing");
	step(syscall(SYS_execve, "/bin/true", (void *)8, none), "bad arguments");
	execl("/bin/sh", "sh", "-c", "echo last > last; exit 7", NULL);
}

static void programs_tools(void)
{
	static const char *const scripts[] = {
	    "mkdir -p a/b/c && cp -p /bin/true a/b/c/true && ln -s ../c a/b/link && ln a/b/c/true a/hard",
	    "tar cf t.tar a && mkdir x && tar xpf t.tar -C x && touch -d @1000 x/a/hard && rm t.tar",
	    "install -m 4711 a/hard installed && chmod g+s,o-x installed",
	    "mktemp -d -p . > name && test -d \"$(cat name)\" && rmdir \"$(cat name)\" && rm name",
	    "echo one > log; echo two >> log; sed -i s/one/1/ log; cat log",
	    "set -C; echo new > clobbered; (echo again > clobbered) 2>/dev/null || echo kept",
	    "dd if=/dev/zero of=zeros bs=1k count=3 conv=fsync 2>/dev/null; truncate -s 10 zeros; wc -c < zeros",
	    "mkfifo p; (echo through > p) & cat p; wait; rm p",
	    "find . -type d -name c -exec chmod 700 {} +; find . -name hard -delete; ls -R",
	    "umask 077; (umask 0; : > open); : > closed; stat -c %a open closed",
	    "exec 7>seven; echo x >&7; exec 7>&-; cat seven; mv seven eight; rm -rf x",
	    "cd a && mv b/c ../moved && rmdir b 2>/dev/null || echo not empty",
	    NULL,
	};
	pid_t pid;

	for (int i = 0; scripts[i]; i++) {
		say("%s", scripts[i]);
		pid = fork();
		NEED(pid >= 0);
		if (pid == 0) {
			NEED(dup2(EQUAL_OUT, 1) == 1 && dup2(EQUAL_OUT, 2) == 2);
			execl("/bin/sh", "sh", "-c", scripts[i], NULL);
			_exit(EQUAL_BROKEN);
		}
		join_child("shell", pid);
	}
}

/* A program that gets other rights by its file: what it makes is its new owner's. */
static void programs_setuid(void)
{
	copy_file("/bin/mkdir", "maker");
	make_folder("world", 0777);
	NEED(chown("maker", NOBODY, NOBODY) == 0 && chmod("maker", 06755) == 0);
	pid_t pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		NEED(setresuid(STRANGER, STRANGER, STRANGER) == 0);
		step(mkdir("world/before", 0755), "before");
		execl("maker", "maker", "world/after", NULL);
		_exit(EQUAL_BROKEN);
	}
	join_child("maker", pid);
	facts_of("world/before");
	facts_of("world/after");
	NEED(unlink("maker") == 0);
}

/* Capabilities that come with a file. */
static void programs_capable(void)
{
	static const unsigned char capability[20] = {1, 0, 0, 2, 2}; /* revision 2, effective: CAP_DAC_OVERRIDE */

	copy_file("/bin/mkdir", "maker");
	make_folder("sealed", 0700);
	if (setxattr("maker", "security.capability", capability, sizeof(capability), 0) != 0) {
		skip("no capabilities of files here: %s", name_of_error(errno));
		return;
	}
	pid_t pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		NEED(setresgid(STRANGER, STRANGER, STRANGER) == 0 && setresuid(STRANGER, STRANGER, STRANGER) == 0);
		step(mkdir("sealed/before", 0755), "before");
		execl("maker", "maker", "sealed/after", NULL);
		_exit(EQUAL_BROKEN);
	}
	join_child("maker", pid);
	facts_of("sealed/after");
	NEED(unlink("maker") == 0);
}

static void programs_scripts(void)
{
	make_file("script", 0755, "#!/bin/sh\necho \"$0 $1\" > out; exit 5\n");
	pid_t pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		execl("./script", "ignored", "argument", NULL);
		_exit(EQUAL_BROKEN);
	}
	join_child("script", pid);
	content_of("out");
	int fd = open("script", O_RDONLY);
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		char *const arguments[] = {(char[]){"x"}, (char[]){"by descriptor"}, NULL};
		syscall(SYS_execveat, fd, "", arguments, environ, AT_EMPTY_PATH);
		_exit(EQUAL_BROKEN);
	}
	join_child("by descriptor", pid);
	content_of("out");
}

/* The program is replaced while the case runs: how it ends is what the new one does. */
static void programs_in_place(void)
{
	say("written before");
	step(mkdir("before", 0755), "mkdir");
	execl("/bin/sh", "sh", "-c", "mkdir after; kill -USR1 $$", NULL);
}

static void *replace_program(void *unused)
{
	(void)unused;
	step(mkdir("by-thread", 0755), "mkdir");
	execl("/bin/sh", "sh", "-c", "mkdir after-thread; umask 077; echo x > file; exit 9", NULL);
	_exit(EQUAL_BROKEN);
}

/* The thread that is not the first does it: what comes next goes by the number of the first. */
static void programs_by_thread(void)
{
	pthread_t thread;

	NEED(pthread_create(&thread, NULL, replace_program, NULL) == 0);
	for (;;)
		pause();
}

static int both_ready[2], goes_on[2];

/* With a umask and mounts that its process does not have. */
static void *replace_elsewhere(void *unused)
{
	char byte = 'x';

	(void)unused;
	NEED(unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	NEED(mount("none", "mnt", "tmpfs", 0, "mode=0755") == 0);
	umask(077);
	NEED(write(both_ready[1], &byte, 1) == 1 && read(goes_on[0], &byte, 1) == 1);
	execl("/bin/sh", "sh", "-c", "mkdir mnt/inside after; : > file; ls mnt > mnt/list; cat mnt/list > list", NULL);
	_exit(EQUAL_BROKEN);
}

/* It goes on by the number of the first thread, but what that one was counts no more. */
static void programs_by_other_thread(void)
{
	pthread_t thread;
	char byte;

	make_folder("mnt", 0755);
	NEED(pipe(both_ready) == 0 && pipe(goes_on) == 0);
	NEED(pthread_create(&thread, NULL, replace_elsewhere, NULL) == 0);
	NEED(read(both_ready[0], &byte, 1) == 1);
	step(mkdir("mnt/first", 0777), "mkdir of the first thread");
	NEED(write(goes_on[1], &byte, 1) == 1);
	for (;;)
		pause();
}

static const struct equal_case cases[] = {
    {"programs_busy", false, programs_busy},
    {"programs_vfork", false, programs_vfork},
    {"programs_failing", false, programs_failing},
    {"programs_tools", false, programs_tools},
    {"programs_setuid", true, programs_setuid},
    {"programs_capable", true, programs_capable},
    {"programs_scripts", false, programs_scripts},
    {"programs_in_place", false, programs_in_place},
    {"programs_by_thread", false, programs_by_thread},
    {"programs_by_other_thread", true, programs_by_other_thread},
    {NULL},
};

int main(int argc, char **argv)
{
	return equal_main(cases, argc, argv);
}
