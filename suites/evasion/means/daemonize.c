/* Two forks and a session: the first process is long gone when the effect comes. */
#include "ev.h"

int main(void)
{
	pid_t middle = fork();

	MUST(middle >= 0);
	if (middle > 0)
		return join(middle);
	setsid();
	pid_t daemon = fork();
	MUST(daemon >= 0);
	if (daemon > 0)
		_exit(0);
	pause_ms(700);
	make_file("f", "text\n");
	did("create f daemon~%d", getpid());
	return 0;
}
