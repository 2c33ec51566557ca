#include "services.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

struct service {
	uint64_t network; /* of an abstract name */
	uint32_t dev_major, dev_minor;
	uint64_t ino; /* of the node otherwise; abstract names have none */
	size_t size;
	char name[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
};

void services_free(struct services *services)
{
	free(services->items);
	*services = (struct services){0};
}

/* False when the peer is no service by a name. */
static bool identify(uint64_t network, const struct effect_peer *peer, const struct effect_object *node,
		     struct service *service)
{
	*service = (struct service){0};
	if (!peer->present || !bytes_equal(peer->family, BYTES("unix")) || peer->path.size == 0)
		return false;
	if (peer->path.data[0] != '@') {
		service->dev_major = node->dev_major;
		service->dev_minor = node->dev_minor;
		service->ino = node->ino;
		return node->has_inode;
	}
	service->network = network;
	service->size = peer->path.size < sizeof(service->name) ? peer->path.size : sizeof(service->name);
	memcpy(service->name, peer->path.data, service->size);
	return true;
}

static bool is_known(const struct services *services, const struct service *wanted)
{
	for (size_t i = 0; i < services->count; i++) {
		const struct service *each = &services->items[i];
		if (each->network == wanted->network && each->dev_major == wanted->dev_major &&
		    each->dev_minor == wanted->dev_minor && each->ino == wanted->ino && each->size == wanted->size &&
		    memcmp(each->name, wanted->name, wanted->size) == 0)
			return true;
	}
	return false;
}

static void remember(struct services *services, const struct service *service)
{
	if (is_known(services, service))
		return;
	if (services->count == services->capacity && services->capacity < SERVICES_LIMIT) {
		size_t capacity = services->capacity ? services->capacity * 2 : 16;
		struct service *items = reallocarray(services->items, capacity, sizeof(*items));
		if (!items)
			return;
		services->items = items;
		services->capacity = capacity;
	}
	if (services->capacity == 0)
		return;
	size_t at = services->count < services->capacity ? services->count++ : services->next++ % services->capacity;
	services->items[at] = *service;
}

void services_settle(struct services *services, uint64_t network, struct effect *effect)
{
	bool binds = effect->local.present && effect->result.state == RESULT_OK;
	bool asks =
	    effect->kind == EFFECT_ipc_connect || effect->kind == EFFECT_ipc_send || effect->kind == EFFECT_ipc_pass_fd;
	struct service service;

	if (binds && (effect->kind == EFFECT_node_create || effect->kind == EFFECT_net_bind) &&
	    identify(network, &effect->local, &effect->object, &service))
		remember(services, &service);
	else if (asks && !effect->delegated.data && identify(network, &effect->peer, &effect->peer.object, &service) &&
		 !is_known(services, &service))
		effect->delegated = BYTES("outside");
}
