/* A daemon outside opens the file and passes the descriptor in; nothing is opened here. */
#include "ev.h"

int main(void)
{
	char order[PATH_MAX + 16], answer[256];
	int fd = outside();

	snprintf(order, sizeof(order), "open %s/f", ev_env("EV_DIR"));
	int file = ask_with(fd, order, -1, answer, sizeof(answer));
	MUST(file >= 0 && write(file, "text\n", 5) == 5);
	did("receive f");
	did("write f");
	return 0;
}
