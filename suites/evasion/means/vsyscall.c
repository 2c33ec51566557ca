/* Calls that are none: the page at the end of the address space, and the functions that the kernel lends. */
#include "ev2.h"

#include <sys/auxv.h>

static long at(uintptr_t address)
{
	long result;

	__asm__ volatile("call *%1" : "=a"(result) : "r"(address), "D"(0L), "S"(0L), "d"(0L) : "rcx", "r11", "memory");
	return result;
}

int main(void)
{
	struct timespec now;
	pid_t child = fork();

	MUST(child >= 0);
	if (child == 0) {
		long seconds = at(0xffffffffff600400);
		_exit(seconds - time(NULL) <= 1 && time(NULL) - seconds <= 1 && at(0xffffffffff600800) == 0 &&
			      at(0xffffffffff600000) == 0
			  ? 0
			  : 1);
	}
	/* A kernel without the page kills; with and without us it is the same. */
	did("vsyscall status=%d", join(child));
	MUST(getauxval(AT_SYSINFO_EHDR) != 0 && clock_gettime(CLOCK_MONOTONIC, &now) == 0);
	did("vdso");
	make_file("f", "text\n");
	did("create f");
	return 0;
}
