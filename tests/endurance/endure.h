/*
 * What the programs of this folder share. Each prints what it knows to have happened, as `name number` lines; run.py
 * compares that with a run that was not traced, with the file system, and with what was recorded.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

__attribute__((unused, noreturn)) static void endure_die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

__attribute__((unused)) static long endure_number(const char *text)
{
	char *end;
	long number = strtol(text, &end, 10);

	if (*end || number < 1) {
		fprintf(stderr, "not a number: %s\n", text);
		exit(64);
	}
	return number;
}

__attribute__((unused)) static void endure_say(const char *name, long number)
{
	printf("%s %ld\n", name, number);
}

/* A new file KIND-ONE-TWO in the working directory; 0, or the error. */
__attribute__((unused)) static int endure_make(const char *kind, long one, long two)
{
	char name[64];

	snprintf(name, sizeof(name), "%s-%ld-%ld", kind, one, two);
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

__attribute__((unused)) static void endure_nap(long nanoseconds)
{
	struct timespec time = {nanoseconds / 1000000000, nanoseconds % 1000000000};

	nanosleep(&time, NULL);
}

/* How many children ended with status 0, once all have ended. */
__attribute__((unused)) static long endure_collect(void)
{
	long good = 0;
	int status;

	for (;;) {
		pid_t pid = wait(&status);
		if (pid < 0 && errno == EINTR)
			continue;
		if (pid < 0)
			return good;
		good += status == 0;
	}
}
