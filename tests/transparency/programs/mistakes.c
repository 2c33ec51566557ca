// One mistake of each kind, for what finds mistakes.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int shared;

static void *count(void *unused)
{
	for (int i = 0; i < 1000; i++)
		shared++;
	return unused;
}

static int overflow(void)
{
	char *bytes = malloc(8);
	bytes[8] = 1;
	free(bytes);
	return 0;
}

static int leak(void)
{
	void *volatile lost = malloc(64);
	lost = NULL;
	return lost != NULL;
}

static int race(void)
{
	pthread_t one, two;
	pthread_create(&one, NULL, count, NULL);
	pthread_create(&two, NULL, count, NULL);
	pthread_join(one, NULL);
	pthread_join(two, NULL);
	return 0;
}

static int files(void)
{
	mkdir("made", 0755);
	int fd = open("made/new", O_WRONLY | O_CREAT, 0644);
	if (fd < 0 || write(fd, "text", 4) != 4)
		return 1;
	close(fd);
	return rename("made/new", "made/renamed");
}

static int in_child(void)
{
	int status = 0;
	pid_t pid = fork();
	if (pid == 0)
		_exit(files());
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "fine";
	if (!strcmp(what, "overflow"))
		return overflow();
	if (!strcmp(what, "leak"))
		return leak();
	if (!strcmp(what, "race"))
		return race();
	if (!strcmp(what, "files"))
		return files();
	if (!strcmp(what, "fork"))
		return in_child();
	if (!strcmp(what, "shift"))
		return (1 << (argc + 40)) == 1;
	return 0;
}
