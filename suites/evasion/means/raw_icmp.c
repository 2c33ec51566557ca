/* Data travels in echo requests; no port and no connection is involved. In a network of our own. */
#include "ev2.h"

#include <netinet/ip_icmp.h>

enum { SIZE = 32 };

static uint16_t checksum(const uint8_t *bytes, size_t size)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < size; i += 2)
		sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

int main(void)
{
	struct sockaddr_in address = loopback(0);
	static const uint8_t secret[] = {'s', '3', 'c', 'r', 'e', 't'};
	uint8_t packet[SIZE] = {ICMP_ECHO}, seen[256];
	struct icmphdr *head = (void *)packet;

	space(CLONE_NEWNET);
	raise_loopback();
	int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
	MUST(fd >= 0);
	memcpy(packet + sizeof(*head), secret, sizeof(secret));
	head->checksum = checksum(packet, sizeof(packet));
	MUST(sendto(fd, packet, sizeof(packet), 0, (struct sockaddr *)&address, sizeof(address)) == sizeof(packet));
	ssize_t size = recv(fd, seen, sizeof(seen), 0);
	MUST(size > 6 && memmem(seen, (size_t)size, secret, sizeof(secret)));
	did("send icmp");
	return 0;
}
