/* Memory and queues with a name: whoever knows it, inside or outside, is at the other end. */
#include "ev2.h"

#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/shm.h>

enum { PAGE = 4096 };

static void posix_objects(const char *name)
{
	struct mq_attr limits = {.mq_maxmsg = 4, .mq_msgsize = 64};
	int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);

	MUST(fd >= 0 && ftruncate(fd, PAGE) == 0);
	char *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST(memory != MAP_FAILED);
	strcpy(memory, "text");
	MUST(shm_unlink(name) == 0);
	did("share shm~%s", name + 1);
	mqd_t queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &limits);
	if (queue < 0)
		skip("POSIX message queues");
	MUST(mq_send(queue, "text", 4, 0) == 0 && mq_unlink(name) == 0);
	did("queue mq~%s", name + 1);
}

static void system_v_objects(int key)
{
	struct {
		long type;
		char text[4];
	} message = {.type = 1, .text = "text"};
	int shared = shmget(key, PAGE, IPC_CREAT | IPC_EXCL | 0600);

	MUST(shared >= 0 && shmat(shared, NULL, 0) != (void *)-1 && shmctl(shared, IPC_RMID, NULL) == 0);
	did("share key~%d shm_id~%d", key, shared);
	int queue = msgget(key, IPC_CREAT | IPC_EXCL | 0600);
	MUST(queue >= 0 && msgsnd(queue, &message, sizeof(message.text), 0) == 0 && msgctl(queue, IPC_RMID, NULL) == 0);
	did("queue queue_id~%d", queue);
}

int main(void)
{
	char name[64];

	snprintf(name, sizeof(name), "/evasion-%d", getpid());
	posix_objects(name);
	system_v_objects(0x45560000 + getpid() % 0x10000);
	return 0;
}
