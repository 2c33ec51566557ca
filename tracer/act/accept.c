/*
 * accept(2): a connection that waits already is taken without waiting, so the result can be read, and with it who connected.
 */
#include <fcntl.h>

#include "base/fd.h"
#include "handlers.h"
#include "os/descriptor.h"

static void look_at_peer(struct act *act)
{
	const struct effect_result *result = &act->decoded->effects->result;

	if (result->state != RESULT_OK || !result->has_value)
		return;
	int socket CLEANUP_FD = descriptor_copy(act->target->tid, act->target->pid, (int)result->value);
	if (socket >= 0)
		decode_peer(act->decoder, act->target, act->decoded, socket);
}

void act_accept(const struct actor *actor, struct act *act)
{
	int socket CLEANUP_FD = descriptor_copy(act->target->tid, act->target->pid, (int)act->stop->args[0]);
	int flags = socket < 0 ? O_NONBLOCK : fcntl(socket, F_GETFL);
	bool blocks = flags >= 0 && !(flags & O_NONBLOCK);

	if (actor->results == RESULTS_none || (socket >= 0 && act_await(actor, act, socket, blocks) == UNSEEN)) {
		act_let_go(actor, act);
		return;
	}
	/* What is no socket, or has nothing to take, fails at once. */
	act_verify(actor, act);
	look_at_peer(act);
}
