/*
 * The program's own filter answers its calls: one with an error, one by a signal whose handler says that it was done,
 * one with a result that is no error. None of them happens.
 */
#include "ev2.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <ucontext.h>

#define ANSWER(number, action) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(number), 0, 1), BPF_STMT(BPF_RET | BPF_K, (action))

static void pretend(int number, siginfo_t *info, void *context)
{
	(void)number, (void)info;
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = 0;
}

static void install(void)
{
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    ANSWER(SYS_mkdir, SECCOMP_RET_ERRNO | EXDEV),
	    ANSWER(SYS_rename, SECCOMP_RET_TRAP),
	    ANSWER(SYS_unlink, SECCOMP_RET_ERRNO),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(*code), .filter = code};
	struct sigaction action = {.sa_sigaction = pretend, .sa_flags = SA_SIGINFO};

	MUST(sigaction(SIGSYS, &action, NULL) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	MUST(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0);
}

int main(void)
{
	make_file("f", "text\n");
	install();
	MUST(syscall(SYS_mkdir, "d", 0755) < 0 && errno == EXDEV);
	MUST(syscall(SYS_rename, "f", "g") == 0);
	MUST(syscall(SYS_unlink, "f") == 0);
	MUST(size_of("f") == 5 && size_of("g") < 0 && access("d", F_OK) != 0);
	did("nothing");
	make_file("h", "");
	did("create h");
	return 0;
}
