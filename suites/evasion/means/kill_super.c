/* Those who watch are looked for among the ancestors and killed, before anything is done. */
#include "ev2.h"

enum { MOST = 8 };

static int kill_one(pid_t pid, int way)
{
	if (way == 0)
		return kill(pid, SIGKILL);
	if (way == 1)
		return (int)syscall(SYS_tgkill, pid, pid, SIGKILL);
	return (int)syscall(SYS_tkill, pid, SIGKILL);
}

int main(void)
{
	pid_t found[MOST];
	int count = watchers(found, MOST);

	for (int i = 0; i < count; i++)
		for (int way = 0; way < 3; way++)
			if (kill_one(found[i], way) == 0)
				did("kill pid~%d", found[i]);
	for (int i = 0; i < count; i++)
		did("aim watcher%d~%d", i + 1, found[i]);
	did("look watchers~%d", count);
	make_file("f", "text\n");
	did("create f");
	return 0;
}
