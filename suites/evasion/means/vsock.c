/* Sockets between a virtual machine and its host. The peer is this machine itself: nothing leaves it. */
#include "ev2.h"

#include <linux/vm_sockets.h>

enum { PORT = 51024 };

int main(void)
{
	struct sockaddr_vm address = {.svm_family = AF_VSOCK, .svm_port = PORT, .svm_cid = VMADDR_CID_LOCAL};
	int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		skip("AF_VSOCK");
	int result = connect(fd, (struct sockaddr *)&address, sizeof(address));
	if (result < 0 && errno == EINPROGRESS)
		pause_ms(100);
	did("connect cid=%u port=%u", address.svm_cid, address.svm_port);
	return 0;
}
