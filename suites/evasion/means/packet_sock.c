/* A UDP datagram that was made by hand goes over lo and is seen to come back: no internet socket ever sends. */
#include "ev.h"

#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sched.h>
#include <sys/ioctl.h>

static uint16_t sum(const struct iphdr *head)
{
	uint16_t words[sizeof(*head) / 2];
	unsigned total = 0;

	memcpy(words, head, sizeof(words));
	for (size_t i = 0; i < sizeof(words) / 2; i++)
		total += words[i];
	total = (total & 0xffff) + (total >> 16);
	return (uint16_t) ~(total + (total >> 16));
}

int main(void)
{
	struct {
		struct iphdr ip;
		struct udphdr udp;
		char text[4];
	} frame = {.text = {'t', 'e', 'x', 't'}};
	struct sockaddr_ll to = {
	    .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP), .sll_ifindex = 1, .sll_halen = 6};
	struct ifreq up = {.ifr_name = "lo", .ifr_flags = IFF_UP};

	space(CLONE_NEWNET);
	int inet = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	MUST(inet >= 0 && ioctl(inet, SIOCSIFFLAGS, &up) == 0);
	int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_IP));
	if (fd < 0)
		skip("packet socket");
	frame.ip = (struct iphdr){.version = 4,
				  .ihl = 5,
				  .ttl = 64,
				  .protocol = IPPROTO_UDP,
				  .tot_len = htons(sizeof(frame)),
				  .saddr = htonl(INADDR_LOOPBACK),
				  .daddr = htonl(INADDR_LOOPBACK)};
	frame.ip.check = sum(&frame.ip);
	frame.udp.source = htons(7);
	frame.udp.dest = htons(9);
	frame.udp.len = htons(sizeof(frame.udp) + sizeof(frame.text));
	MUST(sendto(fd, &frame, sizeof(frame), 0, (struct sockaddr *)&to, sizeof(to)) == sizeof(frame));
	MUST(arrived(fd, SOCK_DGRAM, 200) == 1);
	did("unshare net");
	did("send frame");
	return 0;
}
