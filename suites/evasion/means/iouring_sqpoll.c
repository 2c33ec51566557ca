/* io_uring with a thread of the kernel that looks for work: once it is awake there is no system call at all. */
#include "ring.h"

int main(void)
{
	struct ring ring;

	if (!ring_begin(&ring, true))
		return 0;
	struct io_uring_sqe nothing = {.opcode = IORING_OP_NOP};
	MUST(ring_do(&ring, &nothing) == 0);
	struct io_uring_sqe open_f = {.opcode = IORING_OP_OPENAT,
				      .fd = AT_FDCWD,
				      .addr = ring_text("f"),
				      .len = 0644,
				      .open_flags = O_WRONLY | O_CREAT | O_EXCL};
	MUST(ring_do(&ring, &open_f) >= 0);
	did("create f");
	return 0;
}
