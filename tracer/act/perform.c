/*
 * Making a call on the file system for the agent: its arguments are copied once, and what was decided and recorded is what
 * is done. Only where nobody can tell the difference; everywhere else the kernel makes the call and we look at the result.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "compose.h"
#include "handlers.h"
#include "os/descriptor.h"
#include "os/procfs.h"
#include "performer.h"

/*
 * The kernel gives out the descriptor before it opens: when there is none left, nothing is opened or made. The size of the
 * folder of descriptors is their number since Linux 6.2; fewer than the limit means that one below it is free.
 */
static bool has_room(const struct target *target)
{
	struct stat folder;
	uint64_t limit;

	return fstatat(target->task, "fd", &folder, 0) == 0 && folder.st_size > 0 &&
	       procfs_limit(target->task, target->tid, RLIMIT_NOFILE, &limit) && (uint64_t)folder.st_size < limit;
}

/* Is there anything left of an open whose descriptor finds no room? */
static bool leaves_traces(const struct actor *actor, const struct order *order)
{
	return order_may_create(order) || (order->how.flags & O_TRUNC) || atomic_load(&actor->inotify);
}

static bool may_perform(const struct actor *actor, const struct act *act)
{
	const struct target *target = act->target;

	if (actor->results != RESULTS_perform || !act->may_perform || act->decoded->waits != WAITS_NEVER ||
	    atomic_load(&actor->fanotify))
		return false;
	return !target->confined && target->standing != RIGHTS_UNKNOWN;
}

/* In the agent's name, with what the call says and nothing that may have changed since. */
static struct order_outcome carry_out(const struct actor *actor, const struct act *act, struct order *order)
{
	const struct decoded *decoded = act->decoded;
	struct order_outcome outcome = {.state = ORDER_NOT_MADE, .descriptor = -1};

	if (act->target->plain && !order_lives_elsewhere(act->target))
		return order_carry_out(order);
	bool two = order_has_argument(act, ARG_name_to);
	bool lost = false;
	bool walks = !order->by_descriptor;
	if (walks && (!order_copy_way(act, &decoded->request, &order->place) ||
		      (two && !order_copy_way(act, &decoded->to_request, &order->to)))) {
		;
	} else if (order_lives_elsewhere(act->target)) {
		(void)performer_carry_out(actor->performers, act->target, order, &outcome, &lost);
	} else if (rights_adopt(actor->rights, act->target->rights)) {
		outcome = order_carry_out(order);
		rights_return(actor->rights, act->target->rights);
	}
	/* Whether it was done nobody can tell any more, and the agent's own call will. */
	if (lost)
		outcome.state = ORDER_NOT_MADE;
	if (order->place.base != act->target->root)
		fd_close(&order->place.base);
	if (order->to.base != act->target->root)
		fd_close(&order->to.base);
	return outcome;
}

static void set_identity(struct effect_object *object, const struct order_identity *identity)
{
	object->has_inode = identity->known;
	object->dev_major = identity->dev_major;
	object->dev_minor = identity->dev_minor;
	object->ino = identity->ino;
	object->type = identity->mode & S_IFMT;
}

static void settle(struct act *act, const struct order *order, const struct order_outcome *outcome)
{
	struct effect *effect = act->decoded->effects;

	if (outcome->error) {
		/* An exclusive open that found something, or a removal, speaks of what it found. */
		if (outcome->object.known)
			set_identity(&effect->object, &outcome->object);
		return;
	}
	set_identity(&effect->object, &outcome->object);
	if (act->decoded->to_request.path.data)
		set_identity(&effect->to, &outcome->to);
	if (order->kind == ORDER_OPEN)
		effect->kind = outcome->created ? EFFECT_file_create : EFFECT_file_write;
}

/* Hand the file over and let go of it before the agent goes on: who closes a file for good must be the agent. */
static void deliver(const struct actor *actor, struct act *act, const struct order *order, int *fd)
{
	struct effect_result *result = &act->decoded->effects->result;
	bool close_on_exec = (order->how.flags & O_CLOEXEC) != 0;

	int number = actor->backend->give(actor->backend->self, act->stop, *fd, close_on_exec);
	fd_close(fd);
	if (number < 0) {
		/* No room, which the kernel would have found first: nothing was done. */
		if (number == -EMFILE && !leaves_traces(actor, order))
			*result = (struct effect_result){.state = RESULT_FAILED, .error = EMFILE};
		else
			result->undelivered = true;
		act->pending = PENDING_ERROR;
		act->value = -number;
		return;
	}
	result->has_value = true;
	result->value = number;
	act->value = number;
}

/* What the order needs to know of the task beyond the call; false: it must not be carried out. */
static bool complete(const struct actor *actor, struct act *act, struct order *order)
{
	const struct target *target = act->target;

	if (order->kind == ORDER_OPEN) {
		order_prepare_open(order);
		if (!actor->backend->give || (leaves_traces(actor, order) && !has_room(target)))
			return false;
	}
	/* A lease on the file makes the call wait, and its holder may be anybody of the tree. */
	if (order->kind == ORDER_TRUNCATE && atomic_load(&actor->leases))
		return false;
	if (!order_may_create(order))
		return true;
	if (*act->umask < 0)
		*act->umask = procfs_umask(target->task);
	order->has_umask = *act->umask >= 0;
	order->umask = (mode_t)*act->umask;
	return order->has_umask;
}

/* The very file, not another opening of it: who opened it counts, and for what. */
static struct order_outcome carry_out_on_copy(const struct actor *actor, struct act *act, struct order *order)
{
	int number = order->by_descriptor ? order->descriptor : act->decoded->request.base;
	int descriptor CLEANUP_FD = descriptor_copy(act->target->tid, act->target->pid, number);

	if (descriptor < 0 || (!order->by_descriptor && !act->target->plain))
		return (struct order_outcome){.state = ORDER_NOT_MADE, .descriptor = -1};
	order->place.directory = descriptor;
	return carry_out(actor, act, order);
}

/* False when nothing was done; `moved`: because names changed, so that another look is worth while. */
static bool try_to_perform(const struct actor *actor, struct act *act, bool *moved)
{
	struct order order = {.place.base = -1, .to.base = -1};

	*moved = false;
	if (!may_perform(actor, act) || !order_compose(actor, act, &order) || !complete(actor, act, &order))
		return false;
	bool copied = order.by_descriptor || order.kind == ORDER_LINK_DESCRIPTOR;
	struct order_outcome outcome = copied ? carry_out_on_copy(actor, act, &order) : carry_out(actor, act, &order);
	int opened CLEANUP_FD = outcome.descriptor;
	decoded_release(act->decoded);
	*moved = outcome.state == ORDER_MOVED;
	if (outcome.state == ORDER_WAITS)
		act->decoded->waits = WAITS_LEASE;
	if (outcome.state != ORDER_DONE)
		return false;
	/* The kernel looks for room before it looks for the file: without any it says so. */
	if (outcome.error && order.kind == ORDER_OPEN && !leaves_traces(actor, &order) && !has_room(act->target))
		return false;
	act_performed(act, outcome.error);
	settle(act, &order, &outcome);
	/* Not what had been seen under the name: what it is, its descriptor tells. */
	if (opened >= 0 && !order_is_as_seen(&order, &outcome))
		decode_opened(act->decoder, act->target, act->decoded, opened);
	if (opened >= 0 && order.kind == ORDER_OPEN)
		deliver(actor, act, &order, &opened);
	return true;
}

void act_perform(const struct actor *actor, struct act *act)
{
	enum { ATTEMPTS = 64 };
	bool moved = false;
	bool performed = try_to_perform(actor, act, &moved);

	for (int attempt = 1; moved && attempt < ATTEMPTS; attempt++) {
		decoded_look_again(act->decoder, act->target, act->decoded);
		/* It may mean something now that was not there to be refused before. */
		if (act_refuse_ours(actor, act)) {
			decoded_release(act->decoded);
			return;
		}
		performed = try_to_perform(actor, act, &moved);
	}
	/* Before the kernel makes the call: a directory that is held keeps its file system from being unmounted. */
	decoded_release(act->decoded);
	if (!performed)
		act_verify(actor, act);
}
