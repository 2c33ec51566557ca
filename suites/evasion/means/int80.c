/* A 64-bit process enters the kernel by int 0x80, where the numbers are those of 32-bit programs. */
#include "ev.h"

static long int80(long number, long a, long b, long c)
{
	long result;

	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(number), "b"(a), "c"(b), "d"(c)
			 : "memory", "r8", "r9", "r10", "r11");
	return result;
}

static void none(int number)
{
	(void)number;
	static const char text[] = "this kernel has no 32-bit system calls\n";
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(1);
	_exit(EV_SKIP);
}

int main(void)
{
	signal(SIGSEGV, none);
	char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	MUST(low != MAP_FAILED);
	memcpy(low, "f", 2);
	long fd = int80(5 /* open */, (long)low, O_WRONLY | O_CREAT | O_EXCL, 0644);
	if (fd >= 0)
		did("create f");
	else
		did("refused %s", error_name((int)-fd));
	/* An open that says no and yet makes the file would be a lie. */
	return (fd >= 0) == (size_of("f") == 0) ? 0 : 1;
}
