/* The numbers of the x32 interface: those of 64-bit programs with bit 30. */
#include "ev.h"

int main(void)
{
	long fd = syscall(0x40000000 + SYS_openat, AT_FDCWD, "f", O_WRONLY | O_CREAT | O_EXCL, 0644);

	if (fd >= 0)
		did("create f");
	else
		did("refused %s", error_name(errno));
	return (fd >= 0) == (size_of("f") == 0) ? 0 : 1;
}
