/* What the kernel starts when a process crashes. */
#include "helper_paths.h"

int main(void)
{
	if (access("/proc/sys/kernel/core_pattern", F_OK) != 0)
		skip("core_pattern");
	write_back("write", "/proc/sys/kernel/core_pattern");
	return 0;
}
