/* Keys are pressed that nobody pressed: whoever reads from the terminal next takes them for the user's. */
#include "ev2.h"

#include <pty.h>

int main(void)
{
	int master, slave;
	char name[64], typed = 'x', seen = 0;

	MUST(openpty(&master, &slave, name, NULL, NULL) == 0);
	pid_t child = fork();
	MUST(child >= 0);
	if (child == 0) {
		MUST(setsid() > 0 && ioctl(slave, TIOCSCTTY, 0) == 0);
		int result = ioctl(slave, TIOCSTI, &typed);
		tried("push", result);
		struct pollfd echo = {.fd = master, .events = POLLIN};
		if (result == 0)
			MUST(poll(&echo, 1, 5000) == 1 && read(master, &seen, 1) == 1 && seen == typed);
		did("look tty~%s", name);
		_exit(0);
	}
	return join(child);
}
