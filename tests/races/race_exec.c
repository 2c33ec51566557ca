/*
 * race_exec KIND ROUNDS: a child executes a program, while path and arguments change.
 *
 *   exec-peer    the child shares this process's memory, as after vfork, and a thread of this process writes
 *   exec-shared  the child is a fork, and another process writes through a shared mapping
 *   exec-thread  the child has a thread of its own that writes; the first thread executes, or by turns a third one
 *
 * The program says what it is and what its arguments are (race_image_static.c); the child says why there is none.
 */
#include "race.h"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

enum { SIDES = 2, ARGUMENTS = 3, MESSAGE = 2048, TEXT = 64, CALLS = 4 };

enum kind { PEER, SHARED, THREAD, KINDS };

static const char *const kind_names[KINDS] = {"exec-peer", "exec-shared", "exec-thread"};

/* What may be executed on each side: its path after the letter, and whether it is a script there. */
struct call {
	const char *name, *tail;
	bool flips_path, flips_pointer, may_be_script, may_be_missing;
};

static const struct call calls[CALLS] = {
    {.name = "image, argument", .tail = "/image", .flips_path = true},
    {.name = "script, argument", .tail = "/mixed", .flips_path = true, .may_be_script = true},
    {.name = "argv pointer", .tail = "/image", .flips_pointer = true},
    {.name = "missing", .tail = "/only", .flips_path = true, .may_be_missing = true},
};

/* What the child executes, in memory that somebody writes meanwhile. */
struct program {
	_Alignas(64) char path[TEXT];
	_Alignas(64) char argument[TEXT];
	_Alignas(64) char other[TEXT];
	_Alignas(64) char name[TEXT];
	char *argv[ARGUMENTS];
	atomic_int call;
};

static enum kind kind;
static struct race_area *area;
static struct program *program;
static int pipe_fds[2];
static char pipe_variable[TEXT], folder[PATH_MAX];
static char *environment[] = {pipe_variable, NULL};
static struct stat images[SIDES], mixed[SIDES], interpreter;

static void flip(struct race_area *unused, unsigned random)
{
	const struct call *call = &calls[atomic_load(&program->call)];

	(void)unused;
	if (call->flips_path)
		*(volatile char *)program->path = random & 1 ? 'a' : 'b';
	race_spin(random >> 8);
	if (call->flips_pointer)
		__atomic_store_n(&program->argv[1], random & 2 ? program->argument : program->other, __ATOMIC_RELAXED);
	else
		*(volatile char *)program->argument = random & 2 ? 'x' : 'y';
}

/* All that a flip does not write. A thread of the child comes late: what it begins with is chosen here. */
static void set_up(int number, long round)
{
	static uint64_t state = 1;
	bool changed = atomic_exchange(&program->call, number) != number;

	if (changed && kind != THREAD) {
		/* A flip for the former call may have been under way: it is over when the next one is. */
		race_let_flip(area);
		race_let_flip(area);
	}
	if (changed) {
		program->argument[0] = 'x';
		program->path[0] = 'a';
		program->argv[1] = program->argument;
	}
	strcpy(program->path + 1, calls[number].tail);
	snprintf(program->argument + 1, TEXT - 1, "-%ld", round);
	snprintf(program->other, TEXT, "y-%ld", round);
	if (kind == THREAD)
		flip(area, race_random(&state));
	else
		race_pace(area, round);
}

static void execute(void)
{
	char message[TEXT];

	execve(program->path, program->argv, environment);
	int size = snprintf(message, sizeof(message), "E%d", errno);
	if (write(pipe_fds[1], message, (size_t)size + 1) < 0)
		_exit(2);
	_exit(0);
}

static int execute_as_peer(void *unused)
{
	(void)unused;
	execute();
	return 1;
}

static void *execute_in_thread(void *unused)
{
	(void)unused;
	execute();
	return NULL;
}

/* In a process with threads: the exec ends them all, and what goes on has the number of the process. */
static void execute_beside_thread(bool by_thread)
{
	struct race_flipping flipping = {.by = RACE_THREAD, .flip = flip, .area = area};
	pthread_t thread;

	race_start(&flipping);
	if (!by_thread)
		execute();
	if (pthread_create(&thread, NULL, execute_in_thread, NULL) != 0)
		_exit(2);
	pthread_join(thread, NULL);
	_exit(2);
}

static pid_t start_child(long round)
{
	static char stack[RACE_STACK] __attribute__((aligned(64)));

	if (kind == PEER)
		return clone(execute_as_peer, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
	pid_t child = fork();
	if (child == 0 && kind == THREAD)
		execute_beside_thread(round % 2 == 1);
	if (child == 0)
		execute();
	return child;
}

/* The strings that the message holds, or none when the child was killed before it said anything. */
static int read_message(char *message, const char **texts, int most)
{
	ssize_t size = read(pipe_fds[0], message, MESSAGE - 1);
	int count = 0;

	message[size > 0 ? size : 0] = '\0';
	for (ssize_t at = 0; at < size && count < most; at += (ssize_t)strlen(message + at) + 1)
		texts[count++] = message + at;
	return count;
}

static void say_failure(const struct call *call, const char *said)
{
	int error = (int)strtol(said + 1, NULL, 10);

	if (error != ENOENT || !call->may_be_missing) {
		errno = error;
		race_die(call->name);
	}
	printf("\"outcome\":\"b\",\"errno\":%d,\"is\":{\"path\":\"%s/b%s\",\"ino\":null", error, folder, call->tail);
}

/* texts: inode number of the image, then its arguments; for a script the first ones are the interpreter's. */
static void say_success(const struct call *call, const char **texts, int count)
{
	unsigned long long ino = strtoull(texts[0], NULL, 10);
	bool script = call->may_be_script && ino == interpreter.st_ino;
	const struct stat *objects = call->may_be_script ? mixed : images;
	int side = script || ino == objects[1].st_ino;
	const char *argument = texts[count - 1];

	if (!script && ino != objects[side].st_ino && !call->may_be_missing)
		race_die("an unknown image");
	if (call->may_be_missing)
		side = 0;
	if (call->flips_pointer)
		printf("\"outcome\":\"%c\",", *argument);
	else if (call->may_be_missing)
		printf("\"outcome\":\"a\",");
	else
		printf("\"outcome\":\"%c%c\",", side ? 'b' : 'a', *argument);
	printf("\"errno\":0,\"is\":{\"path\":\"%s/%c%s\",\"argv\":[[\"program\",\"%s\"]],\"image.ino\":\"%llu\"",
	       folder, side ? 'b' : 'a', call->tail, argument, ino);
	if (script)
		printf(",\"image.interpreters\":[[\"%s/interpreter\"]]", folder);
	else
		race_is("image.interpreters", "null");
	if (call->may_be_script)
		race_is("ino?", "\"%llu\"", (unsigned long long)mixed[side].st_ino);
}

static void make_round(int number, long round)
{
	char message[MESSAGE];
	const char *texts[TEXT];
	int status;

	set_up(number, round);
	pid_t child = start_child(round);
	if (child < 0 || waitpid(child, &status, 0) != child)
		race_die("child");
	int count = read_message(message, texts, TEXT);
	printf("{\"call\":\"%s\",\"syscall\":\"execve\",\"pid\":%d,", calls[number].name, child);
	if (count == 0)
		printf("\"outcome\":\"killed\",\"errno\":0,\"is\":{\"status\":%d", status);
	else if (message[0] == 'E')
		say_failure(&calls[number], message);
	else
		say_success(&calls[number], texts, count);
	race_end();
}

static void copy_image(const char *path, struct stat *found)
{
	char own[PATH_MAX], source[PATH_MAX + TEXT];
	ssize_t size = readlink("/proc/self/exe", own, sizeof(own) - 1);

	if (size < 0)
		race_die("readlink");
	own[size] = '\0';
	*strrchr(own, '/') = '\0';
	snprintf(source, sizeof(source), "%s/race_image_static", own);
	int from = open(source, O_RDONLY | O_CLOEXEC), to = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	if (from < 0 || to < 0 || fstat(from, found) != 0 ||
	    sendfile(to, from, NULL, (size_t)found->st_size) != found->st_size || fstat(to, found) != 0)
		race_die(path);
	close(from);
	close(to);
}

static void prepare(void)
{
	struct stat only;
	char text[PATH_MAX + TEXT];

	if (!getcwd(folder, sizeof(folder)) || mkdir("a", 0755) != 0 || mkdir("b", 0755) != 0)
		race_die("folders");
	copy_image("a/image", &images[0]);
	copy_image("b/image", &images[1]);
	copy_image("a/mixed", &mixed[0]);
	copy_image("a/only", &only);
	copy_image("interpreter", &interpreter);
	int fd = open("b/mixed", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	int size = snprintf(text, sizeof(text), "#!%s/interpreter\n", folder);
	if (fd < 0 || write(fd, text, (size_t)size) != size || fstat(fd, &mixed[1]) != 0 || close(fd) != 0)
		race_die("script");
	/* Only the children keep it over an exec, and the empty pipe of one that was killed must not be waited for. */
	if (pipe2(pipe_fds, O_NONBLOCK) != 0)
		race_die("pipe");
	snprintf(pipe_variable, sizeof(pipe_variable), "RACE_PIPE=%d", pipe_fds[1]);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 64;
	while (kind < KINDS && strcmp(argv[1], kind_names[kind]) != 0)
		kind++;
	if (kind == KINDS)
		return 64;
	long each = (race_number(argv[2]) + CALLS - 1) / CALLS;
	prepare();
	area = race_map(kind == SHARED ? RACE_SHARED : RACE_THREAD);
	_Static_assert(sizeof(struct program) <= sizeof(area->text) + sizeof(area->other), "it lies in the area");
	program = (void *)area->text;
	strcpy(program->name, "program");
	program->argv[0] = program->name;
	struct race_flipping flipping = {.by = kind == SHARED ? RACE_SHARED : RACE_THREAD, .flip = flip, .area = area};
	atomic_store(&program->call, CALLS - 1);
	if (kind != THREAD)
		race_start(&flipping);
	for (int number = 0; number < CALLS; number++)
		for (long round = 0; round < each; round++)
			make_round(number, round);
	if (kind != THREAD)
		race_stop(&flipping);
	return 0;
}
