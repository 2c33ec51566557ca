/*
 * A filter that kills whoever makes a call that is not among five, and then an exec: whoever watches must need none of
 * the others inside the process. The program that is run has no libc.
 */
#include "ev2.h"

#include <linux/filter.h>
#include <linux/seccomp.h>

#define LET(number) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(number), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void install(void)
{
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    LET(SYS_openat),
	    LET(SYS_write),
	    LET(SYS_mkdir),
	    LET(SYS_execve),
	    LET(SYS_exit_group),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(*code), .filter = code};

	MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	MUST(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0);
}

int main(int argc, char **argv)
{
	char bare[PATH_MAX];

	(void)argc;
	snprintf(bare, sizeof(bare), "%s", argv[0]);
	char *slash = strrchr(bare, '/');
	MUST(slash && (size_t)(slash - bare) + sizeof("/rawstatic") < sizeof(bare));
	strcpy(slash + 1, "rawstatic");
	MUST(access(bare, X_OK) == 0);
	char *const arguments[] = {bare, NULL};
	char *const environment[] = {NULL};
	install();
	MUST(syscall(SYS_mkdir, "d", 0755) == 0);
	did("mkdir d");
	syscall(SYS_execve, bare, arguments, environment);
	_exit(1);
}
