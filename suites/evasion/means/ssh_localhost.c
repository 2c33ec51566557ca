/* The machine's own ssh server; here it is one that only greets, in a network of our own. */
#include "ev2.h"

enum { SSH = 22 };

int main(void)
{
	struct sockaddr_in address = loopback(SSH);
	char greeting[64] = "";
	int on = 1;

	space(CLONE_NEWNET);
	raise_loopback();
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	MUST(listener >= 0 && setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0);
	MUST(bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(listener, 1) == 0);
	pid_t server = fork();
	MUST(server >= 0);
	if (server == 0) {
		int one = accept(listener, NULL, NULL);
		_exit(one >= 0 && write(one, "SSH-2.0-x\r\n", 11) == 11 ? 0 : 1);
	}
	close(listener);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	MUST(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	MUST(read(fd, greeting, sizeof(greeting) - 1) == 11 && strncmp(greeting, "SSH-", 4) == 0);
	MUST(join(server) == 0);
	did("connect tcp 22");
	return 0;
}
