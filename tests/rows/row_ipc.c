/*
 * System V and POSIX queues, memory and semaphores, in an IPC namespace of their own where there may be one.
 */
#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

#include "row_child.h"

enum { SIZE = 8192 };

static int key_of(int number)
{
	return 0x20000000 + (getpid() << 4) + number;
}

static void (*in_ipc_namespace)(void);

static void ipc_in_child(void)
{
	/* Without one of its own the objects are the machine's for a moment; each case removes what it made. */
	if (!row_unshare(CLONE_NEWIPC))
		errno = 0;
	in_ipc_namespace();
}

static void in_ipc(const char *row, void (*run)(void))
{
	in_ipc_namespace = run;
	row_in_child(row, 0, ipc_in_child);
}

static void begin(const char *row, long result)
{
	row_expect(row, "ipc.shared", result);
}

static int say_shmget(int key, int flags, const char *flag_names)
{
	long result = syscall(SYS_shmget, key, (size_t)SIZE, flags);

	begin("shmget", result);
	row_number("args.key", key);
	row_number("args.size", SIZE);
	row_json("flags", flag_names);
	row_value(result);
	row_done();
	return (int)result;
}

static void shmget_in_child(void)
{
	int key = key_of(1);

	int private_id = say_shmget(IPC_PRIVATE, IPC_CREAT | 0600, "[\"IPC_CREAT\",\"0x180\"]");
	int id = say_shmget(key, IPC_CREAT | IPC_EXCL | 0640, "[\"IPC_CREAT\",\"IPC_EXCL\",\"0x1a0\"]");
	struct shmid_ds status;
	row_must(shmctl(id, IPC_STAT, &status) == 0 && status.shm_segsz == SIZE && status.shm_perm.__key == key);
	say_shmget(key, IPC_CREAT | IPC_EXCL | 0640, "[\"IPC_CREAT\",\"IPC_EXCL\",\"0x1a0\"]");
	say_shmget(key_of(2), 0, "[]");
	row_must(shmctl(id, IPC_RMID, NULL) == 0 && shmctl(private_id, IPC_RMID, NULL) == 0);
}

static void run_shmget(void)
{
	in_ipc("shmget", shmget_in_child);
}

static void say_shmat(int id, int flags)
{
	long result = syscall(SYS_shmat, id, NULL, flags);

	begin("shmat", result);
	row_number("args.shmid", id);
	row_number("args.shmaddr", 0);
	if (flags)
		row_hex("args.shmflg", (unsigned long)flags);
	row_value(result);
	row_done();
}

static void shmat_in_child(void)
{
	struct shmid_ds status;
	int id = shmget(IPC_PRIVATE, SIZE, IPC_CREAT | 0600);

	row_must(id >= 0);
	say_shmat(id, 0);
	say_shmat(id, SHM_RDONLY);
	row_must(shmctl(id, IPC_STAT, &status) == 0 && status.shm_nattch == 2);
	/* To replace a mapping, one must say where. */
	say_shmat(id, SHM_REMAP);
	row_must(shmctl(id, IPC_RMID, NULL) == 0);
	say_shmat(INT_MAX, 0);
}

static void run_shmat(void)
{
	in_ipc("shmat", shmat_in_child);
}

/* shmctl and msgctl. */
static void say_control(const char *row, long number, const char *id_name, int id, int op, void *data)
{
	long result = syscall(number, id, op, data);

	begin(row, result);
	row_number(id_name, id);
	row_text("args.op", op == IPC_RMID ? "IPC_RMID" : "IPC_SET");
	row_done();
}

static void shmctl_in_child(void)
{
	struct shmid_ds status;
	int id = shmget(IPC_PRIVATE, SIZE, IPC_CREAT | 0600);

	row_must(id >= 0 && syscall(SYS_shmctl, id, IPC_STAT, &status) == 0);
	row_absent("shmctl");
	row_text("args.op", "IPC_STAT");
	row_done();
	status.shm_perm.mode = 0400;
	say_control("shmctl", SYS_shmctl, "args.shmid", id, IPC_SET, &status);
	row_must(shmctl(id, IPC_STAT, &status) == 0 && (status.shm_perm.mode & 0777) == 0400);
	status.shm_perm.uid = (uid_t)-1;
	say_control("shmctl", SYS_shmctl, "args.shmid", id, IPC_SET, &status);
	say_control("shmctl", SYS_shmctl, "args.shmid", id, IPC_RMID, NULL);
	row_must(shmctl(id, IPC_STAT, &status) == -1);
	say_control("shmctl", SYS_shmctl, "args.shmid", id, IPC_RMID, NULL);
}

static void run_shmctl(void)
{
	in_ipc("shmctl", shmctl_in_child);
}

static int say_semget(int key, int count, int flags, const char *flag_names)
{
	long result = syscall(SYS_semget, key, count, flags);

	begin("semget", result);
	row_number("args.key", key);
	row_number("args.nsems", count);
	row_json("flags", flag_names);
	row_value(result);
	row_done();
	return (int)result;
}

static void semget_in_child(void)
{
	int key = key_of(3);

	int id = say_semget(key, 3, IPC_CREAT | 0600, "[\"IPC_CREAT\",\"0x180\"]");
	row_must(semctl(id, 2, GETVAL) == 0);
	say_semget(key, 3, IPC_CREAT | IPC_EXCL | 0600, "[\"IPC_CREAT\",\"IPC_EXCL\",\"0x180\"]");
	/* More than it has. */
	say_semget(key, 4, 0, "[]");
	row_must(semctl(id, 0, IPC_RMID) == 0);
}

static void run_semget(void)
{
	in_ipc("semget", semget_in_child);
}

static void say_semctl(int id, int number, int op, const char *name, void *data)
{
	long result = syscall(SYS_semctl, id, number, op, data);

	begin("semctl", result);
	row_number("args.semid", id);
	row_number("args.semnum", number);
	row_text("args.op", name);
	row_done();
}

static void semctl_in_child(void)
{
	unsigned short values[2] = {3, 4};
	struct semid_ds status;
	int id = semget(IPC_PRIVATE, 2, IPC_CREAT | 0600);

	row_must(id >= 0 && syscall(SYS_semctl, id, 0, IPC_STAT, &status) == 0);
	row_absent("semctl");
	row_text("args.op", "IPC_STAT");
	row_done();
	say_semctl(id, 1, SETVAL, "SETVAL", (void *)7);
	row_must(semctl(id, 1, GETVAL) == 7);
	/* Beyond SEMVMX. */
	say_semctl(id, 1, SETVAL, "SETVAL", (void *)1000000);
	say_semctl(id, 0, SETALL, "SETALL", values);
	row_must(semctl(id, 0, GETVAL) == 3 && semctl(id, 1, GETVAL) == 4);
	status.sem_perm.mode = 0400;
	say_semctl(id, 0, IPC_SET, "IPC_SET", &status);
	say_semctl(id, 0, IPC_RMID, "IPC_RMID", NULL);
	row_must(semctl(id, 0, GETVAL) == -1);
	say_semctl(id, 0, IPC_RMID, "IPC_RMID", NULL);
}

static void run_semctl(void)
{
	in_ipc("semctl", semctl_in_child);
}

static int say_msgget(int key, int flags, const char *flag_names)
{
	long result = syscall(SYS_msgget, key, flags);

	begin("msgget", result);
	row_number("args.key", key);
	row_json("flags", flag_names);
	row_value(result);
	row_done();
	return (int)result;
}

static void msgget_in_child(void)
{
	int key = key_of(4);

	int id = say_msgget(key, IPC_CREAT | 0600, "[\"IPC_CREAT\",\"0x180\"]");
	row_must(msgget(key, 0) == id);
	say_msgget(key, IPC_CREAT | IPC_EXCL | 0600, "[\"IPC_CREAT\",\"IPC_EXCL\",\"0x180\"]");
	say_msgget(key_of(5), 0, "[]");
	row_must(msgctl(id, IPC_RMID, NULL) == 0);
}

static void run_msgget(void)
{
	in_ipc("msgget", msgget_in_child);
}

static void msgctl_in_child(void)
{
	struct msqid_ds status;
	int id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);

	row_must(id >= 0 && syscall(SYS_msgctl, id, IPC_STAT, &status) == 0);
	row_absent("msgctl");
	row_text("args.op", "IPC_STAT");
	row_done();
	status.msg_qbytes = 100;
	say_control("msgctl", SYS_msgctl, "args.msqid", id, IPC_SET, &status);
	row_must(msgctl(id, IPC_STAT, &status) == 0 && status.msg_qbytes == 100);
	say_control("msgctl", SYS_msgctl, "args.msqid", id, IPC_RMID, NULL);
	row_must(msgctl(id, IPC_STAT, &status) == -1);
	say_control("msgctl", SYS_msgctl, "args.msqid", id, IPC_RMID, NULL);
}

static void run_msgctl(void)
{
	in_ipc("msgctl", msgctl_in_child);
}

struct message {
	long type;
	char text[16];
};

static long say_msgsnd(int id, const struct message *message, size_t size)
{
	long result = syscall(SYS_msgsnd, id, message, size, IPC_NOWAIT);

	row_expect("msgsnd", "ipc.send", result);
	row_number("args.msqid", id);
	row_number("args.msgsz", (long)size);
	row_hex("args.msgflg", IPC_NOWAIT);
	row_done();
	return result;
}

static void msgsnd_in_child(void)
{
	struct message message = {.type = 5, .text = "over"}, seen = {0};
	struct msqid_ds status;
	int id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);

	row_must(id >= 0 && say_msgsnd(id, &message, 5) == 0);
	row_must(msgrcv(id, &seen, sizeof(seen.text), 5, IPC_NOWAIT) == 5 && strcmp(seen.text, "over") == 0);
	/* A queue that is too small. */
	row_must(msgctl(id, IPC_STAT, &status) == 0);
	status.msg_qbytes = 4;
	row_must(msgctl(id, IPC_SET, &status) == 0);
	row_must(say_msgsnd(id, &message, 6) == -1);
	message.type = 0;
	row_must(say_msgsnd(id, &message, 3) == -1);
	row_must(msgctl(id, IPC_RMID, NULL) == 0);
}

static void run_msgsnd(void)
{
	in_ipc("msgsnd", msgsnd_in_child);
}

/* The kernel's names have no slash; the C library takes it away. */
static const char *queue_name(void)
{
	static char name[32];

	snprintf(name, sizeof(name), "row-%d", getpid());
	return name;
}

static int say_mq_open(const char *name, int flags, const char *flag_names)
{
	struct mq_attr attr = {.mq_maxmsg = 1, .mq_msgsize = 16};
	long result = syscall(SYS_mq_open, name, flags, 0600, flags & O_CREAT ? &attr : NULL);

	begin("mq_open", result);
	row_text("args.name", name);
	row_json("flags", flag_names);
	if (flags & O_CREAT)
		row_text("mode", "0600");
	row_value(result);
	row_done();
	return (int)result;
}

static long say_mq_unlink(const char *name)
{
	long result = syscall(SYS_mq_unlink, name);

	begin("mq_unlink", result);
	row_text("args.name", name);
	row_done();
	return result;
}

static void mq_open_in_child(void)
{
	const char *name = queue_name();
	struct mq_attr attr;

	int fd = say_mq_open(name, O_RDWR | O_CREAT | O_EXCL, "[\"O_RDWR\",\"O_CREAT\",\"O_EXCL\"]");
	row_must(fd >= 0 && mq_getattr(fd, &attr) == 0 && attr.mq_msgsize == 16);
	row_must(say_mq_open(name, O_WRONLY, "[\"O_WRONLY\"]") >= 0);
	row_must(say_mq_open(name, O_RDWR | O_CREAT | O_EXCL, "[\"O_RDWR\",\"O_CREAT\",\"O_EXCL\"]") == -1);
	row_must(syscall(SYS_mq_unlink, name) == 0);
	row_must(say_mq_open(name, O_RDONLY, "[\"O_RDONLY\"]") == -1);
}

static void run_mq_open(void)
{
	in_ipc("mq_open", mq_open_in_child);
}

static void mq_unlink_in_child(void)
{
	const char *name = queue_name();

	row_must(syscall(SYS_mq_open, name, O_RDWR | O_CREAT | O_EXCL, 0600, NULL) >= 0);
	row_must(say_mq_unlink(name) == 0);
	row_must(say_mq_unlink(name) == -1);
}

static void run_mq_unlink(void)
{
	in_ipc("mq_unlink", mq_unlink_in_child);
}

static long say_mq_send(int fd, size_t size)
{
	long result = syscall(SYS_mq_timedsend, fd, "over and more than fits", size, 3U, NULL);

	row_expect("mq_timedsend", "ipc.send", result);
	row_number("args.mqdes", fd);
	row_number("args.msg_len", (long)size);
	row_number("args.msg_prio", 3);
	row_done();
	return result;
}

static void mq_timedsend_in_child(void)
{
	struct mq_attr attr = {.mq_maxmsg = 1, .mq_msgsize = 16};
	const char *name = queue_name();
	char seen[16];
	unsigned priority = 0;
	int flags = O_RDWR | O_CREAT | O_EXCL | O_NONBLOCK;
	int fd = (int)syscall(SYS_mq_open, name, flags, 0600, &attr);

	row_must(fd >= 0 && say_mq_send(fd, 4) == 0);
	/* The queue is full. */
	row_must(say_mq_send(fd, 5) == -1);
	row_must(mq_receive(fd, seen, sizeof(seen), &priority) == 4 && memcmp(seen, "over", 4) == 0 && priority == 3);
	row_must(say_mq_send(fd, 20) == -1);
	row_must(syscall(SYS_mq_unlink, name) == 0);
}

static void run_mq_timedsend(void)
{
	in_ipc("mq_timedsend", mq_timedsend_in_child);
}

int main(int argc, char **argv)
{
	static const struct row_case cases[] = {
	    {"shmget", run_shmget},
	    {"shmat", run_shmat},
	    {"shmctl", run_shmctl},
	    {"semget", run_semget},
	    {"semctl", run_semctl},
	    {"msgget", run_msgget},
	    {"msgctl", run_msgctl},
	    {"msgsnd", run_msgsnd},
	    {"mq_open", run_mq_open},
	    {"mq_unlink", run_mq_unlink},
	    {"mq_timedsend", run_mq_timedsend},
	    {0},
	};

	return row_main(cases, argc, argv);
}
