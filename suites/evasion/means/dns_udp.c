/* Data is carried out in a name that somebody is asked for, at a port where no name server is expected. */
#include "ev.h"

int main(void)
{
	/* A question for the address of s3cret.example. */
	static const char question[] = "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x06s3cret\x07"
				       "example\x00\x00\x01\x00\x01";
	struct sockaddr_in address = loopback(ev_env_number("EV_OUTSIDE_UDP"));
	char answer[1024];
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	MUST(fd >= 0 && sendto(fd, question, sizeof(question) - 1, 0, (struct sockaddr *)&address, sizeof(address)) ==
			    sizeof(question) - 1);
	ask_with(outside(), "datagrams", -1, answer, sizeof(answer));
	MUST(strstr(answer, "733363726574") != NULL);
	did("send udp question");
	return 0;
}
