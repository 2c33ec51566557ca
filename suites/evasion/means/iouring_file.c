/* io_uring: open, write, rename, mkdir, unlink, with none of the system calls of these names. */
#include "ring.h"

int main(void)
{
	struct ring ring;

	make_file("old", "");
	if (!ring_begin(&ring, false))
		return 0;
	struct io_uring_sqe open_f = {.opcode = IORING_OP_OPENAT,
				      .fd = AT_FDCWD,
				      .addr = ring_text("f"),
				      .len = 0644,
				      .open_flags = O_WRONLY | O_CREAT | O_EXCL};
	int fd = ring_do(&ring, &open_f);
	MUST(fd >= 0);
	struct io_uring_sqe write_f = {.opcode = IORING_OP_WRITE, .fd = fd, .addr = ring_text("text\n"), .len = 5};
	struct io_uring_sqe rename_f = {.opcode = IORING_OP_RENAMEAT,
					.fd = AT_FDCWD,
					.addr = ring_text("f"),
					.len = (uint32_t)AT_FDCWD,
					.addr2 = ring_text("g")};
	struct io_uring_sqe mkdir_d = {
	    .opcode = IORING_OP_MKDIRAT, .fd = AT_FDCWD, .addr = ring_text("d"), .len = 0755};
	struct io_uring_sqe unlink_old = {.opcode = IORING_OP_UNLINKAT, .fd = AT_FDCWD, .addr = ring_text("old")};
	MUST(ring_do(&ring, &write_f) == 5);
	MUST(ring_do(&ring, &rename_f) == 0);
	MUST(ring_do(&ring, &mkdir_d) == 0);
	MUST(ring_do(&ring, &unlink_old) == 0);
	did("create f");
	did("rename f g");
	did("mkdir d");
	did("unlink old");
	return 0;
}
