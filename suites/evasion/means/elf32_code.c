/* What elf32 runs: a 32-bit program that makes a file, and connects to the port that it was given. */
static int call(int number, int a, int b, int c)
{
	int result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory");
	return result;
}

static int connected(const char *port)
{
	int number = 0;
	while (*port)
		number = number * 10 + (*port++ - '0');
	/* sockaddr_in with 127.0.0.1, in network order */
	unsigned char address[16] = {2, 0, (unsigned char)(number >> 8), (unsigned char)number, 127, 0, 0, 1};
	int socket_call[3] = {2, 1, 0};
	/* socketcall(SYS_SOCKET, ...), then SYS_CONNECT */
	int fd = call(102, 1, (int)socket_call, 0);
	int connect_call[3] = {fd, (int)address, 16};
	return fd >= 0 && call(102, 3, (int)connect_call, 0) == 0;
}

__attribute__((noreturn, used)) void code(char **argv);
void code(char **argv)
{
	int fd = call(5, (int)"f", 0301, 0644);
	int good = fd >= 0 && connected(argv[1]);

	call(252, good ? 0 : 1, 0, 0);
	/* Where even exit_group is refused. */
	__builtin_trap();
}

__asm__(".globl _start\n_start:\n\tlea 4(%esp), %eax\n\tand $-16, %esp\n\tsub $12, %esp\n\tpush %eax\n\tcall code\n");
