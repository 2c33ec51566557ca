/* A service outside is asked, over an abstract socket, to make the file. */
#include "ev.h"

int main(void)
{
	char order[PATH_MAX + 16], answer[256];
	int fd = outside();

	snprintf(order, sizeof(order), "create %s/f", ev_env("EV_DIR"));
	ask_with(fd, order, -1, answer, sizeof(answer));
	MUST(strcmp(answer, "done") == 0 && size_of("f") == 0);
	did("ask create f");
	return 0;
}
