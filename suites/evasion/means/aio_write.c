/* The old asynchronous interface: the file is written by io_submit. */
#include "ev.h"

#include <linux/aio_abi.h>

int main(void)
{
	aio_context_t context = 0;
	struct io_event event;

	int fd = open("f", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	MUST(fd >= 0);
	if (syscall(SYS_io_setup, 1, &context) != 0)
		skip("io_setup");
	struct iocb one = {.aio_lio_opcode = IOCB_CMD_PWRITE,
			   .aio_fildes = (uint32_t)fd,
			   .aio_buf = (uintptr_t) "text\n",
			   .aio_nbytes = 5};
	struct iocb *list[] = {&one};
	MUST(syscall(SYS_io_submit, context, 1, list) == 1);
	MUST(syscall(SYS_io_getevents, context, 1, 1, &event, NULL) == 1 && event.res == 5);
	did("create f");
	return 0;
}
