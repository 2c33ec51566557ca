/* Data is left in a keyring of the kernel. */
#include "ev.h"

int main(void)
{
	/* KEY_SPEC_PROCESS_KEYRING: it goes with the process. */
	if (syscall(SYS_add_key, "user", "ev-store", "text", 4, -2) < 0)
		skip("add_key");
	did("add_key user ev-store");
	return 0;
}
