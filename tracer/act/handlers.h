/*
 * Private to this room: one handler for each of specs/handlings.def, and what they share.
 */
#pragma once

#include <sys/socket.h>

#include "act/act.h"

typedef void (*act_handler)(const struct actor *actor, struct act *act);

/* The kernel makes the call, and nobody looks at what becomes of it. */
void act_let_go(const struct actor *actor, struct act *act);
/* The kernel makes the call; its result is read while the task still stands. */
void act_verify(const struct actor *actor, struct act *act);
/* We make the call where that makes no difference; else the kernel does, and its result is read. */
void act_perform(const struct actor *actor, struct act *act);
/* connect(2) and bind(2) on the agent's own socket, with our copy of the address: for plain targets. */
void act_connect(const struct actor *actor, struct act *act);
void act_bind(const struct actor *actor, struct act *act);

/* accept(2): see accept.c. */
void act_accept(const struct actor *actor, struct act *act);

enum arrival {
	ARRIVED,
	EMPTY, /* and the call does not wait */
	UNSEEN /* nothing came, or there was no waiting for it: the kernel makes the call */
};

/* Wait until there is something to be taken from our copy of the socket, but for a short while only. */
enum arrival act_await(const struct actor *actor, const struct act *act, int socket, bool blocks);
/* recvmsg(2): what descriptors wait on a Unix socket, before the kernel makes the call. */
void act_receive(const struct actor *actor, struct act *act);

/* After another look at what the call is about: true when it is assure's own, and the call is answered with a refusal. */
bool act_refuse_ours(const struct actor *actor, struct act *act);
void act_set_how(struct act *act, enum effect_how how);
/* We made the call, and this is how it ended: 0, or an errno value that the agent gets. */
void act_performed(struct act *act, int error);
/* After a call that succeeded: is the agent still there to be told? */
void act_check_delivery(const struct actor *actor, struct act *act);
/* Another entry of the first effect's `args`, or NULL when there is no room or no effect. */
struct effect_value *act_add_value(struct act *act, const char *name, enum effect_value_type type);

/* Whether connect(2) and bind(2) may be ours to make. */
bool act_stands_in(const struct actor *actor, const struct act *act);
/*
 * The socket that the call is about, shared with the agent; -1 when it cannot be had. When it could be taken the task was
 * still waiting: it is its own.
 */
int act_take_socket(const struct actor *actor, const struct act *act);
/* An integer option of SOL_SOCKET; -1 when the descriptor is no socket. */
int act_socket_option(int socket, int name);
/* The address as a system call takes it, with the length that the agent gave: too long ones are the kernel's to refuse. */
const struct sockaddr *act_address(const struct act *act, socklen_t *size);
