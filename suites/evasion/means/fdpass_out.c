/* The file is opened here, and a daemon outside does the writing. */
#include "ev.h"

int main(void)
{
	char answer[256];
	int fd = outside();

	make_file("f", "");
	int file = open("f", O_WRONLY | O_CLOEXEC);
	MUST(file >= 0);
	ask_with(fd, "write", file, answer, sizeof(answer));
	MUST(strcmp(answer, "done") == 0 && size_of("f") > 0);
	did("pass f");
	return 0;
}
