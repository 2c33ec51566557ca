/* Starting programs. */
#include "row_process.h"

#include <pthread.h>

#ifndef AT_EXECVE_CHECK
#define AT_EXECVE_CHECK 0x10000
#endif

static char *environment[] = {"ROW_SECRET=hidden", "ROW_EMPTY=", NULL};
static char *arguments[] = {"row", "no such row", "two words", NULL};
static const char arguments_json[] = "[\"row\",\"no such row\",\"two words\"]";

/* This program with arguments that name no row: ends at once with status 0. */
static const char *own_program(void)
{
	static char path[PATH_MAX];
	ssize_t size = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (size < 0)
		row_give_up("/proc/self/exe");
	path[size] = 0;
	return path;
}

static void write_file(const char *name, const char *text, mode_t mode)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || write(fd, text, strlen(text)) < 0 || fchmod(fd, mode) != 0 || close(fd) != 0)
		row_give_up(name);
}

struct attempt {
	bool thread; /* not by the thread that the process began with */
	int directory;
	const char *path;
	int flags; /* -1: execve */
	int error; /* what the call came back with */
	int status;
	int tell;
};

static void *call_exec(void *argument)
{
	const struct attempt *attempt = argument;

	if (attempt->flags < 0)
		syscall(SYS_execve, attempt->path, arguments, environment);
	else
		syscall(SYS_execveat, attempt->directory, attempt->path, arguments, environment, attempt->flags);
	int error = errno;
	(void)!write(attempt->tell, &error, sizeof(error));
	_exit(0);
}

/* Exec in a child. A pipe that closes on exec tells whether the call came back. */
static void try_exec(struct attempt *attempt)
{
	int tell[2];

	if (pipe2(tell, O_CLOEXEC) != 0)
		row_give_up("pipe2");
	attempt->tell = tell[1];
	pid_t pid = fork();
	if (pid == 0) {
		pthread_t thread;
		if (!attempt->thread)
			call_exec(attempt);
		else if (pthread_create(&thread, NULL, call_exec, attempt) == 0)
			pthread_join(thread, NULL);
		_exit(98);
	}
	close(tell[1]);
	attempt->error = 0;
	if (read(tell[0], &attempt->error, sizeof(attempt->error)) < 0)
		row_give_up("read");
	close(tell[0]);
	attempt->status = row_wait(pid);
}

/* What every exec tells; the rest is the caller's. The name stands as it was given, be it that of a link. */
static void begin(const char *row, const struct attempt *attempt, const char *path)
{
	char here[PATH_MAX];
	struct stat status;

	errno = attempt->error;
	row_expect(row, "proc.exec", attempt->error ? -1 : 0);
	row_text("path", path);
	row_json("argv", arguments_json);
	row_json("args.env_names", "[\"ROW_SECRET\",\"ROW_EMPTY\"]");
	if (strcmp(path, attempt->path) != 0 && *attempt->path)
		row_text("as_given", attempt->path);
	if (getcwd(here, sizeof(here)))
		row_text("cwd", here);
	if (lstat(path, &status) == 0)
		row_inode("", &status);
}

static void expect_image(const char *path)
{
	struct stat status;
	char *real = realpath(path, NULL);

	if (!real || stat(real, &status) != 0)
		row_give_up(path);
	row_text("image.path", real);
	row_inode("image.", &status);
	free(real);
}

static void check_status(const struct attempt *attempt, int expected)
{
	if (attempt->error == 0 && (!WIFEXITED(attempt->status) || WEXITSTATUS(attempt->status) != expected)) {
		fprintf(stderr, "%s: started, but ended with %d\n", attempt->path, attempt->status);
		exit(1);
	}
}

static void execve_program(void)
{
	struct attempt attempt = {.path = own_program(), .flags = -1};

	try_exec(&attempt);
	check_status(&attempt, 0);
	begin("execve", &attempt, own_program());
	expect_image(own_program());
	row_done();

	if (symlink(own_program(), "program-link") != 0)
		row_give_up("symlink");
	attempt.path = "program-link";
	try_exec(&attempt);
	begin("execve", &attempt, row_path("program-link"));
	expect_image(own_program());
	row_done();
}

static void execve_script(void)
{
	struct attempt attempt = {.path = "./script", .flags = -1};

	write_file("script", "#! /bin/sh -e\nexit 7\n", 0700);
	try_exec(&attempt);
	check_status(&attempt, 7);
	begin("execve", &attempt, row_path("script"));
	expect_image("/bin/sh");
	row_json("image.interpreters", "[\"/bin/sh\"]");
	row_done();
}

static void execve_script_link(void)
{
	struct attempt attempt = {.path = "script-link", .flags = -1};

	if (symlink("script", "script-link") != 0)
		row_give_up("symlink");
	try_exec(&attempt);
	check_status(&attempt, 7);
	begin("execve", &attempt, row_path("script-link"));
	expect_image("/bin/sh");
	row_json("image.interpreters", "[\"/bin/sh\"]");
	row_done();
}

/* The other threads end, and this one takes over the process's id. */
static void execve_thread(void)
{
	struct attempt attempt = {.thread = true, .path = "./program-link", .flags = -1};

	try_exec(&attempt);
	check_status(&attempt, 0);
	begin("execve", &attempt, row_path("program-link"));
	expect_image(own_program());
	row_done();

	attempt = (struct attempt){.thread = true, .path = "no-such-thread-tool", .flags = -1};
	try_exec(&attempt);
	begin("execve", &attempt, row_path("no-such-thread-tool"));
	row_done();
}

/* A script whose interpreter is a script: the kernel follows the chain. */
static void execve_chain(void)
{
	struct attempt attempt = {.path = "outer", .flags = -1};
	char text[PATH_MAX + 32], chain[2 * PATH_MAX];

	snprintf(text, sizeof(text), "#!%s\n", row_path("script"));
	if (strlen(text) > 250) {
		row_skip("execve", "the working directory's name does not fit into a #! line");
		return;
	}
	write_file("outer", text, 0700);
	try_exec(&attempt);
	check_status(&attempt, 7);
	begin("execve", &attempt, row_path("outer"));
	expect_image("/bin/sh");
	snprintf(chain, sizeof(chain), "[\"%s\",\"/bin/sh\"]", row_path("script"));
	row_json("image.interpreters", chain);
	row_done();
}

static void execve_failures(void)
{
	static const struct {
		const char *path;
		int error;
	} failures[] = {
	    {"no-such-directory/tool", ENOENT}, {"no-such-tool", ENOENT}, {"no-interpreter", ENOENT},
	    {"not-executable", EACCES},         {"no-format", ENOEXEC},   {"script/tool", ENOTDIR},
	};

	write_file("no-interpreter", "#!/no/such/interpreter\n", 0700);
	write_file("not-executable", "#!/bin/sh\n", 0600);
	write_file("no-format", "neither ELF nor script\n", 0700);
	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		struct attempt attempt = {.path = failures[i].path, .flags = -1};
		try_exec(&attempt);
		if (attempt.error != failures[i].error)
			row_give_up(attempt.path);
		begin("execve", &attempt, row_path(attempt.path));
		row_done();
	}
}

/* As a shell looks for a program: every folder of PATH is one failed exec. */
static void execve_search(void)
{
	static const char *const names[] = {"bin-one/tool", "bin-two/tool", "bin-three/tool"};

	if (mkdir("bin-one", 0700) != 0 || mkdir("bin-two", 0700) != 0 || mkdir("bin-three", 0700) != 0)
		row_give_up("mkdir");
	write_file("bin-two/tool", "", 0600);
	if (symlink(own_program(), "bin-three/tool") != 0)
		row_give_up("symlink");
	for (size_t i = 0; i < 3; i++) {
		char path[PATH_MAX];
		snprintf(path, sizeof(path), "%s", row_path(names[i]));
		struct attempt attempt = {.path = path, .flags = -1};
		try_exec(&attempt);
		begin("execve", &attempt, path);
		if (attempt.error == 0)
			expect_image(own_program());
		row_done();
	}
}

static void row_execve(void)
{
	execve_program();
	execve_script();
	execve_script_link();
	execve_chain();
	execve_thread();
	execve_failures();
	execve_search();
}

static void execveat_program(int here)
{
	int self = open(own_program(), O_PATH);
	struct attempt attempt = {.directory = here, .path = "at-program"};

	if (self < 0 || symlink(own_program(), "at-program") != 0)
		row_give_up("at-program");
	try_exec(&attempt);
	check_status(&attempt, 0);
	begin("execveat", &attempt, row_path("at-program"));
	expect_image(own_program());
	row_json("flags", "[]");
	row_done();

	attempt = (struct attempt){.directory = self, .path = "", .flags = AT_EMPTY_PATH};
	try_exec(&attempt);
	check_status(&attempt, 0);
	begin("execveat", &attempt, own_program());
	expect_image(own_program());
	row_json("flags", "[\"AT_EMPTY_PATH\"]");
	row_done();
	close(self);
}

static void execveat_failures(int here)
{
	struct attempt attempt = {.directory = here, .path = "at-nothing"};

	try_exec(&attempt);
	begin("execveat", &attempt, row_path("at-nothing"));
	row_done();

	attempt = (struct attempt){.directory = here, .path = "at-program", .flags = AT_SYMLINK_NOFOLLOW};
	try_exec(&attempt);
	if (attempt.error != ELOOP)
		row_give_up("execveat of a link that is not followed");
	begin("execveat", &attempt, row_path("at-program"));
	row_json("flags", "[\"AT_SYMLINK_NOFOLLOW\"]");
	row_done();

	write_file("at-file", "#!/bin/sh\n", 0600);
	attempt = (struct attempt){.directory = here, .path = "at-file"};
	try_exec(&attempt);
	begin("execveat", &attempt, row_path("at-file"));
	row_done();
}

static void row_execveat(void)
{
	int here = open(".", O_RDONLY | O_DIRECTORY);
	struct attempt check = {.directory = here, .path = "at-program", .flags = AT_EXECVE_CHECK};

	execveat_program(here);
	execveat_failures(here);
	try_exec(&check);
	row_no_effect("execveat", "\"flags\":[\"AT_EXECVE_CHECK\"]");
	close(here);
}

int main(int argc, char **argv)
{
	static const struct row_case cases[] = {{"execve", row_execve}, {"execveat", row_execveat}, {0}};

	return row_main(cases, argc, argv);
}
