/* The kernel's keys, in a keyring that ends with this process. */
#include "row_process.h"

#include <linux/keyctl.h>

static long add_key(const char *type, const char *description, size_t size)
{
	long key = syscall(SYS_add_key, type, description, size ? "data" : NULL, size, KEY_SPEC_PROCESS_KEYRING);

	row_expect("add_key", "kernel.keys", key);
	row_text("args.type", type);
	row_text("args.description", description);
	row_number("args.plen", (long long)size);
	row_number("args.keyring", KEY_SPEC_PROCESS_KEYRING);
	if (key > 0)
		row_number("result.value", key);
	row_done();
	return key;
}

static void row_add_key(void)
{
	row_wanted("add_key", add_key("user", "row:one", 4), "needs kernel keys");
	add_key("no-such-type", "row:one", 4);
	/* names with a dot are the kernel's own */
	add_key("keyring", ".row", 0);
	add_key("user", "row:empty", 0);
}

static void request(const char *description)
{
	row_expect("request_key", "kernel.keys", syscall(SYS_request_key, "user", description, NULL, 0));
	row_text("args.type", "user");
	row_text("args.description", description);
	row_number("args.dest_keyring", 0);
	row_done();
}

static void row_request_key(void)
{
	long key = syscall(SYS_add_key, "user", "row:wanted", "data", 4, KEY_SPEC_PROCESS_KEYRING);

	if (key < 0)
		row_skip("request_key", "needs kernel keys");
	else
		request("row:wanted");
	/* Without information for a program nothing is started to make the key. */
	request("row:unknown");
}

static long control(int operation, const char *name, const unsigned long arguments[4])
{
	static const char *const names[] = {"args.arg2", "args.arg3", "args.arg4", "args.arg5"};
	long result = syscall(SYS_keyctl, operation, arguments[0], arguments[1], arguments[2], arguments[3]);

	row_expect("keyctl", "kernel.keys", result);
	row_text("args.operation", name);
	for (int i = 0; i < 4; i++)
		if (arguments[i])
			row_hex(names[i], arguments[i]);
	if (result > 0)
		row_number("result.value", result);
	row_done();
	return result;
}

#define CONTROL(operation, ...) control(operation, #operation, (const unsigned long[4]){__VA_ARGS__})

static void row_keyctl(void)
{
	long added = syscall(SYS_add_key, "user", "row:controlled", "data", 4, KEY_SPEC_PROCESS_KEYRING);
	unsigned long key = (unsigned long)added;
	char buffer[8];

	if (added < 0) {
		row_skip("keyctl", "needs kernel keys");
		return;
	}
	CONTROL(KEYCTL_UPDATE, key, (unsigned long)"other", 5);
	if (CONTROL(KEYCTL_READ, key, (unsigned long)buffer, sizeof(buffer)) != 5 || memcmp(buffer, "other", 5) != 0)
		row_give_up("KEYCTL_READ");
	CONTROL(KEYCTL_SETPERM, key, 0x3f000000);
	CONTROL(KEYCTL_REVOKE, key);
	/* revoked; no key at all; no such operation */
	CONTROL(KEYCTL_READ, key, (unsigned long)buffer, sizeof(buffer));
	CONTROL(KEYCTL_READ, 0x7ffffffe, (unsigned long)buffer, sizeof(buffer));
	control(999, "0x3e7", (const unsigned long[4]){0});
	CONTROL(KEYCTL_CLEAR, (unsigned long)KEY_SPEC_PROCESS_KEYRING);
}

int main(int argc, char **argv)
{
	static const struct row_case cases[] = {
	    {"add_key", row_add_key}, {"request_key", row_request_key}, {"keyctl", row_keyctl}, {0}};

	return row_main(cases, argc, argv);
}
