#include "passphrase.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"

enum { INTERRUPT = 3 /* what Ctrl-C is while it makes no signal */ };

/* Up to the end of the line or of the file. */
static bool read_line(int fd, bool terminal, struct passphrase *out, struct err *err)
{
	out->size = 0;
	for (;;) {
		char c;
		ssize_t got = read(fd, &c, 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_set(err, errno, "passphrase");
		if (terminal && got > 0 && c == INTERRUPT)
			return err_set(err, EINTR, "passphrase");
		if (got == 0 || c == '\n')
			break;
		if (out->size == sizeof(out->text))
			return err_set(err, 0, "passphrase: longer than %zu bytes", sizeof(out->text));
		out->text[out->size++] = c;
	}
	out->present = out->size > 0;
	return out->present || err_set(err, 0, "passphrase: it is empty");
}

static bool read_descriptor(uint64_t descriptor, struct passphrase *out, struct err *err)
{
	if (descriptor > INT_MAX || fcntl((int)descriptor, F_GETFD) < 0)
		return err_set(err, EBADF, "passphrase: descriptor %llu", (unsigned long long)descriptor);
	bool good = read_line((int)descriptor, false, out, err);
	/* The command must not have what is left of it. */
	close((int)descriptor);
	return good;
}

/* Unseen, and without signals: one that ended us would leave the terminal mute. */
static bool prompt(const char *text, struct passphrase *out, struct err *err)
{
	struct termios before, mute;
	int terminal CLEANUP_FD = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);

	if (terminal < 0 || tcgetattr(terminal, &before) != 0) {
		err_set(err, 0, "host key: it is sealed with a passphrase, and there is no terminal to ask for it");
		return err_hint(err, "give it on a descriptor: --passphrase-fd N");
	}
	mute = before;
	mute.c_lflag &= ~(tcflag_t)(ECHO | ISIG);
	mute.c_lflag |= ICANON;
	/* Canonical input ends at a line, or at once with the character that we take for an interruption. */
	mute.c_cc[VEOL] = INTERRUPT;
	if (tcsetattr(terminal, TCSAFLUSH, &mute) != 0)
		return err_set(err, errno, "asking for the passphrase");
	bool good = fd_write_full(terminal, text, strlen(text)) && read_line(terminal, true, out, err);
	(void)fd_write_full(terminal, "\n", 1);
	(void)tcsetattr(terminal, TCSAFLUSH, &before);
	return good || err_is_set(err) || err_set(err, errno, "asking for the passphrase");
}

bool passphrase_ask(const char *home, const struct passphrase_source *source, struct passphrase *out, struct err *err)
{
	struct ed25519_key public;
	bool sealed = false;

	*out = (struct passphrase){.present = false};
	/* Whatever is wrong with the key is said by whoever uses it. */
	if (!host_key_public(home, &public, &sealed, NULL) || !sealed)
		return true;
	if (source->given)
		return read_descriptor(source->descriptor, out, err);
	return prompt("assure: passphrase of the host key: ", out, err);
}

bool passphrase_choose(const struct passphrase_source *source, struct passphrase *out, struct err *err)
{
	struct passphrase again = {.present = false};

	*out = (struct passphrase){.present = false};
	if (source->given)
		return read_descriptor(source->descriptor, out, err);
	bool good = prompt("assure: new passphrase for the host key: ", out, err) &&
		    prompt("assure: the same once more: ", &again, err) &&
		    (bytes_equal(passphrase_bytes(out), passphrase_bytes(&again)) ||
		     err_set(err, 0, "passphrase: the two differ"));
	passphrase_wipe(&again);
	return good;
}
