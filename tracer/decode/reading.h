/*
 * Private to this room: the state of decoding one call, and the routines for its arguments.
 */
#pragma once

#include "decode/decode.h"
#include "decode/flags.h"

/* The classes of args.def; each has one routine, read_<class>(). */
#define ARG_CLASSES(X)                \
	X(SKIP, skip)                 \
	X(DIRFD, dirfd)               \
	X(PATH, path)                 \
	X(NAME, name)                 \
	X(PATH_TO, path_to)           \
	X(NAME_TO, name_to)           \
	X(FD, fd)                     \
	X(FD_TO, fd_to)               \
	X(TEXT, text)                 \
	X(SIZED_TEXT, sized_text)     \
	X(TEXT_TO, text_to)           \
	X(MOUNT_DATA, mount_data)     \
	X(MOUNT_OPTION, mount_option) \
	X(AT_FLAGS, flags)            \
	X(FLAGS, flags)               \
	X(ENUM, enum)                 \
	X(HEX, hex)                   \
	X(OPEN_HOW, open_how)         \
	X(MODE, mode)                 \
	X(DEV, dev)                   \
	X(INT, int)                   \
	X(UINT, uint)                 \
	X(LONG, long)                 \
	X(SIZE, size)                 \
	X(ID, id)                     \
	X(ID_LIST, id_list)           \
	X(TIMES, times)               \
	X(TIMEVALS, timevals)         \
	X(UTIMBUF, utimbuf)           \
	X(FILE_HANDLE, file_handle)   \
	X(PID, pid)                   \
	X(PIDFD, pidfd)               \
	X(SIGNAL, signal)             \
	X(ARGV, argv)                 \
	X(ENVP, envp)                 \
	X(SOCKFD, sockfd)             \
	X(SOCKADDR, sockaddr)         \
	X(MSGHDR, msghdr)             \
	X(MMSGHDR, mmsghdr)           \
	X(MSGHDR_IN, msghdr_in)       \
	X(BUFFER, buffer)             \
	X(SOCKTYPE, socktype)

enum arg_class {
#define X(identifier, routine) CLASS_##identifier,
	ARG_CLASSES(X)
#undef X
	    ARG_CLASS_COUNT
};

/* A socket of the task, looked at through a copy of its descriptor. */
struct socket_about {
	bool known;
	int family, type, protocol;
	bool connected;
	bool shares_port;         /* SO_REUSEPORT is set: others may be bound to the port, before or after */
	struct effect_peer local; /* its own address */
	struct effect_peer peer;  /* when connected */
};

/* What an effect record can hold of an argument vector (the rest is counted), and the kernel's limit on one string. */
enum { VECTOR_BYTES_LIMIT = 1 << 20, VECTOR_COUNT_LIMIT = 16384, STRING_LIMIT = 131072 };

struct reading {
	struct decoder *decoder;
	const struct target *target;
	const struct stop *stop;
	const struct syscall_row *row;
	struct decoded *out;
	struct effect *effect; /* the one being filled */
	int base;              /* from the last DIRFD argument */
	uint64_t at_flags;     /* of the row's AT_FLAGS argument, read beforehand */
	bool has_at_flags;
	uint64_t open_flags;                 /* of an open; read beforehand */
	struct socket_about socket;          /* of the row's SOCKFD argument */
	struct path_request *socket_request; /* where the name of a unix socket is kept for a second look; or NULL */
	struct bytes payload;                /* start of what is sent, where DNS is looked for */
};

/* One argument: its class routine's contract. */
typedef void (*arg_reader)(struct reading *reading, size_t index);
#define X(identifier, routine) void read_##routine(struct reading *reading, size_t index);
ARG_CLASSES(X)
#undef X

/* Said beside effects after which the kernel may be anybody's. */
void reading_note_trust(struct effect *effect);

/* What a row does beyond its arguments (specs/specials.def); runs after all of them were read. */
typedef void (*special_decoder)(struct reading *reading);
#define SPECIAL(identifier, ...) void special_##identifier(struct reading *reading);
#include "specials.def"
#undef SPECIAL

static inline struct arena *reading_arena(struct reading *reading)
{
	return &reading->decoder->arena;
}
static inline uint64_t reading_arg(const struct reading *reading, size_t index)
{
	return reading->stop->args[index];
}
static inline const char *reading_name(const struct reading *reading, size_t index)
{
	return reading->row->args[index].name;
}

/* Copy from the task; false (and counted as unreadable) when it is not all there. */
bool reading_memory(struct reading *reading, uint64_t address, void *out, size_t size);
/* A string of the task in the arena, NUL-terminated; absent when it cannot be read or exceeds `limit`. */
struct bytes reading_string(struct reading *reading, uint64_t address, size_t limit);
/* A string of at most `size` bytes of text at `address`, as bytes; absent when unreadable. */
struct bytes reading_bytes(struct reading *reading, uint64_t address, size_t size);

/* The call must not be waited for when it is about an object of a file system that somebody serves. */
void reading_note_waiting(struct reading *reading, const struct path_facts *facts);

/* The process that the call is about: `target`. */
void reading_target(struct reading *reading, int64_t pid);

/* Add to `args`; silently full past EFFECT_VALUE_LIMIT, which rows are checked against. */
struct effect_value *reading_value(struct reading *reading, const char *name, enum effect_value_type type);
void reading_add_int(struct reading *reading, const char *name, int64_t number);
void reading_add_uint(struct reading *reading, const char *name, uint64_t number);
void reading_add_text(struct reading *reading, const char *name, const char *text);
void reading_add_bytes(struct reading *reading, const char *name, struct bytes bytes);
void reading_add_flag(struct reading *reading, const char *flag);
/* The named bits of a word into `flags`. */
void reading_add_flags(struct reading *reading, enum flag_set set, uint64_t word);
void reading_add_hex(struct reading *reading, const char *name, uint64_t value);

/* Make the call `count` effects, each a copy of what the first one holds so far. Returns how many there are room for. */
size_t reading_effects(struct reading *reading, size_t count);

/* What kind of socket a descriptor of the task is (`own_address`: and where it is bound); false when it is none, or cannot be copied. */
bool socket_look(struct reading *reading, int fd, bool own_address, struct socket_about *about);
/* An address of `size` bytes as the kernel would read it. False when it is too short for its family. */
bool socket_address(struct reading *reading, const void *address, size_t size, struct effect_peer *peer);
/* "tcp", "udp", ... for a type and protocol; absent when they have no name. */
struct bytes socket_protocol(int family, int type, int protocol);

/* Recognise a process outside the tree that would act for it (specs/delegates.def). */
void reading_delegates(struct reading *reading, struct effect *effect);
/* DNS questions (RFC 1035 section 4) in a datagram, as a list in args.dns_questions; false when it is no question. */
bool reading_dns(struct reading *reading, struct bytes datagram);
