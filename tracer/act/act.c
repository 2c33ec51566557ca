#include "act/act.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "handlers.h"
#include "order.h"
#include "os/memory.h"
#include "os/procfs.h"

void act_set_how(struct act *act, enum effect_how how)
{
	for (size_t i = 0; i < act->decoded->count; i++)
		act->decoded->effects[i].how = how;
}

static void set_refused(struct act *act, int error, enum result_by by)
{
	for (size_t i = 0; i < act->decoded->count; i++) {
		struct effect *effect = &act->decoded->effects[i];
		effect->how = HOW_performed;
		effect->result = (struct effect_result){.state = RESULT_REFUSED, .error = error, .by = by};
	}
	act->pending = PENDING_ERROR;
	act->value = error;
}

bool act_refuse_ours(const struct actor *actor, struct act *act)
{
	int error = 0;

	if (protect_check(actor->protection, act->decoder->cache, act->stop, act->target, act->decoded, &error) !=
	    PROTECT_REFUSE)
		return false;
	set_refused(act, error, BY_SELF);
	return true;
}

void act_performed(struct act *act, int error)
{
	for (size_t i = 0; i < act->decoded->count; i++) {
		struct effect *effect = &act->decoded->effects[i];
		effect->how = HOW_performed;
		effect->result = (struct effect_result){
		    .state = error ? RESULT_FAILED : RESULT_OK,
		    .error = error,
		};
	}
	act->pending = error ? PENDING_ERROR : PENDING_VALUE;
	act->value = error;
}

void act_check_delivery(const struct actor *actor, struct act *act)
{
	if (!actor->backend->still_waiting(actor->backend->self, act->stop))
		act->decoded->effects->result.undelivered = true;
}

struct effect_value *act_add_value(struct act *act, const char *name, enum effect_value_type type)
{
	struct effect *effect = act->decoded->effects;

	if (act->decoded->count == 0 || effect->value_count == EFFECT_VALUE_LIMIT)
		return NULL;
	struct effect_value *value = &effect->values[effect->value_count++];
	*value = (struct effect_value){.name = name, .type = type};
	return value;
}

void act_let_go(const struct actor *actor, struct act *act)
{
	(void)actor;
	act_set_how(act, HOW_observed);
	act->pending = PENDING_CONTINUE;
}

/* Seize, let the kernel make the call, look at the task where the call ended. */
static void verify_call(const struct actor *actor, struct act *act, bool exec)
{
	/* What we could not read may be withheld from the kernel's call as well, for as long as somebody likes. */
	if (actor->results == RESULTS_none || act->never_wait ||
	    (act->decoded->unreadable > 0 && memory_is_crowded()) || act->decoded->waits != WAITS_NEVER ||
	    !capture_begin(&act->capture, act->stop->tid, exec)) {
		act_let_go(actor, act);
		return;
	}
	act_set_how(act, HOW_observed);
	act->pending = PENDING_NOTHING;
	if (!actor->backend->answer(actor->backend->self, act->stop, ANSWER_CONTINUE, 0)) {
		capture_abort(&act->capture);
		act->vanished = true;
		return;
	}
	if (exec && act->meanwhile)
		act->meanwhile(act->context);
	switch (capture_finish(&act->capture)) {
	case CAPTURE_RETURNED:
		act_set_how(act, HOW_verified);
		decode_result(act->decoder, act->target, act->decoded, act->capture.value);
		if (exec && act->capture.value == -ENOENT)
			decode_exec_missed(act->decoder, act->target, act->stop, act->decoded);
		act->pending = PENDING_RELEASE;
		break;
	case CAPTURE_EXECUTED:
		act_set_how(act, HOW_verified);
		act->decoded->effects->result.state = RESULT_OK;
		act->executed = true;
		act->pending = PENDING_RELEASE;
		break;
	case CAPTURE_RESTARTS:
		/* Without a signal of its own the task was interrupted by us alone: it makes the call again, and stops again. */
		act->interrupted = procfs_signal_pending(act->target->task);
		act->restarts = !act->interrupted;
		act->pending = PENDING_RELEASE;
		break;
	case CAPTURE_DIED:
		act->died = true;
		break;
	case CAPTURE_STOPPED:
		break;
	}
}

void act_verify(const struct actor *actor, struct act *act)
{
	verify_call(actor, act, false);
}

static bool gives_privilege(const struct decoded *decoded)
{
	struct bytes path = decoded->effects->object.path;
	char value[64];

	if (decoded->facts.mode & (S_ISUID | S_ISGID))
		return true;
	return path.data && getxattr(path.data, "security.capability", value, sizeof(value)) > 0;
}

/*
 * A search along PATH tries many names that are not there. The kernel looks for the file before anything else could go
 * wrong with these arguments, so the answer is known; and it is about the name that was read, which nobody can change.
 */
static bool is_missing(const struct actor *actor, const struct act *act)
{
	const struct decoded *decoded = act->decoded;
	const struct effect *effect = decoded->effects;

	return actor->results == RESULTS_perform && act->target->plain && act->target->same_mounts &&
	       decoded->unreadable == 0 && decoded->request.path.size > 0 && effect->argv_count > 0 &&
	       effect->argv_total == 0 && !decoded->facts.exists && decoded->facts.error == ENOENT &&
	       decoded->facts.parent_exists && decoded->facts.local && !decoded->facts.procfs;
}

static void check_exec(const struct actor *actor, struct act *act)
{
	if (is_missing(actor, act)) {
		act_performed(act, ENOENT);
		return;
	}
	if (!actor->keeps_privilege && gives_privilege(act->decoded)) {
		act_let_go(actor, act);
		return;
	}
	verify_call(actor, act, true);
}

static void refuse(const struct actor *actor, struct act *act)
{
	/* io_uring would carry effects past the filter; programs fall back when the kernel seems to lack it. */
	if (actor->io_uring_allowed && act->decoded->effects->kind == EFFECT_kernel_io_uring)
		act_let_go(actor, act);
	else
		set_refused(act, ENOSYS, BY_UNSUPPORTED);
}

static const act_handler handlers[HANDLING_COUNT] = {
    [HANDLING_perform] = act_perform, [HANDLING_verify] = act_verify,   [HANDLING_let_go] = act_let_go,
    [HANDLING_refuse] = refuse,       [HANDLING_exec] = check_exec,     [HANDLING_connect] = act_connect,
    [HANDLING_bind] = act_bind,       [HANDLING_receive] = act_receive, [HANDLING_accept] = act_accept,
};

bool act_prepare_thread(void)
{
	return order_prepare();
}

static void signal_others(const struct actor *actor, struct act *act)
{
	int signal = (int)act->stop->args[1];
	int64_t pid = (int)act->stop->args[0];

	/* The record comes first: the caller may be among those who end. */
	int error = protect_signal_others(actor->protection, act->target, pid, signal);
	struct effect *effect = act->decoded->effects;
	effect->how = HOW_performed;
	effect->result.state = error ? RESULT_FAILED : RESULT_OK;
	effect->result.error = error;
	act->pending = error ? PENDING_ERROR : PENDING_VALUE;
	act->value = error;
}

void act_begin(const struct actor *actor, struct act *act)
{
	int error = 0;

	act->pending = PENDING_CONTINUE;
	switch (protect_check(actor->protection, act->decoder->cache, act->stop, act->target, act->decoded, &error)) {
	case PROTECT_REFUSE:
		/* What a mark would not record is recorded when it was aimed at us. */
		if (act->decoded->count == 0)
			act->decoded->count = 1;
		set_refused(act, error, BY_SELF);
		return;
	case PROTECT_PERFORM:
		signal_others(actor, act);
		return;
	case PROTECT_PASS:
		break;
	}
	/* Whoever sees the end of a call of state must see it before the caller goes on. */
	bool state = act->decoded->row->special == SPECIAL_state && actor->results == RESULTS_perform;
	/* To dissolve a connection is no effect, but whoever asks for it could turn it into one after the look. */
	if (act->decoded->count == 0 && act->decoded->handling != HANDLING_connect && !state)
		return;
	handlers[act->decoded->handling](actor, act);
}

void act_end(const struct actor *actor, struct act *act)
{
	const struct backend *backend = actor->backend;

	switch (act->pending) {
	case PENDING_CONTINUE:
		act->vanished = !backend->answer(backend->self, act->stop, ANSWER_CONTINUE, 0);
		break;
	case PENDING_ERROR:
		act->vanished = !backend->answer(backend->self, act->stop, ANSWER_ERROR, act->value);
		break;
	case PENDING_VALUE:
		act->vanished = !backend->answer(backend->self, act->stop, ANSWER_VALUE, act->value);
		break;
	case PENDING_RELEASE:
		capture_release(&act->capture);
		break;
	case PENDING_NOTHING:
		break;
	}
	act->pending = PENDING_NOTHING;
}

void act_refuse(const struct actor *actor, const struct stop *stop, int error)
{
	(void)actor->backend->answer(actor->backend->self, stop, ANSWER_ERROR, error);
}
