/* clone3 with CLONE_PARENT: the child is a brother, its parent is whoever started us, and the flags lie in memory. */
#include "ev.h"

#include <linux/sched.h>

int main(void)
{
	struct clone_args how = {.flags = CLONE_PARENT};
	int done[2];
	char byte;

	MUST(pipe(done) == 0);
	pid_t middle = fork();
	MUST(middle >= 0);
	if (middle == 0) {
		long brother = syscall(SYS_clone3, &how, sizeof(how));
		if (brother < 0)
			skip("clone3");
		if (brother > 0)
			_exit(0);
		make_file("f", "text\n");
		did("create f brother~%d", getpid());
		MUST(write(done[1], "x", 1) == 1);
		_exit(7);
	}
	close(done[1]);
	int first = join(-1), second = join(-1);
	MUST(first + second == 7 && read(done[0], &byte, 1) == 1);
	return 0;
}
