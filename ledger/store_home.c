#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "store_file.h"

bool store_path(char out[STORE_PATH_SIZE], struct err *err, const char *home, ...)
{
	size_t used = 0;
	va_list parts;
	va_start(parts, home);
	for (const char *part = home; part; part = va_arg(parts, const char *)) {
		int written = snprintf(out + used, STORE_PATH_SIZE - used, "%s%s", used ? "/" : "", part);
		used += (size_t)written;
		if (used >= STORE_PATH_SIZE)
			break;
	}
	va_end(parts);
	if (used >= STORE_PATH_SIZE)
		return err_set(err, ENAMETOOLONG, "state folder: path below %s", home);
	return true;
}

/* Where the state folder should be; the order is the contract of store_home(). */
static bool choose_home(char *out, size_t size, struct err *err)
{
	const char *base = getenv("ASSURE_HOME"), *below = "";
	if (!base || !*base) {
		if (geteuid() == 0) {
			base = "/var/lib/assure";
		} else if ((base = getenv("XDG_STATE_HOME")) && *base) {
			below = "/assure";
		} else {
			base = getenv("HOME");
			below = "/.local/state/assure";
		}
	}
	if (!base || !*base) {
		err_set(err, 0, "state folder: neither ASSURE_HOME nor HOME is set");
		return err_hint(err, "set ASSURE_HOME to a folder of yours");
	}
	char cwd[PATH_MAX] = "";
	if (base[0] != '/' && !getcwd(cwd, sizeof(cwd)))
		return err_set(err, errno, "state folder: current directory");
	int written = snprintf(out, size, "%s%s%s%s", cwd, cwd[0] ? "/" : "", base, below);
	if (written < 0 || (size_t)written >= size)
		return err_set(err, ENAMETOOLONG, "state folder: %s", base);
	for (size_t end = strlen(out); end > 1 && out[end - 1] == '/'; end--)
		out[end - 1] = '\0';
	return true;
}

static bool make_parents(const char *path, struct err *err)
{
	char part[PATH_MAX];
	if (strlen(path) >= sizeof(part))
		return err_set(err, ENAMETOOLONG, "state folder: %s", path);
	strcpy(part, path);
	for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(part, 0700) != 0 && errno != EEXIST)
			return err_set(err, errno, "state folder: cannot make %s", part);
		*slash = '/';
	}
	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return err_set(err, errno, "state folder: cannot make %s", path);
	return true;
}

/* Another user who may write here, or choose what is here, could show us runs that never were. */
static bool check_home(const char *path, struct err *err)
{
	struct stat st;
	if (lstat(path, &st) != 0)
		return err_set(err, errno, "state folder: %s", path);
	if (S_ISLNK(st.st_mode)) {
		err_set(err, 0, "state folder: %s is a symbolic link", path);
		return err_hint(err, "set ASSURE_HOME to the folder itself");
	}
	if (!S_ISDIR(st.st_mode))
		return err_set(err, ENOTDIR, "state folder: %s", path);
	if (st.st_uid != geteuid()) {
		err_set(err, 0, "state folder: %s belongs to user %u", path, (unsigned)st.st_uid);
		return err_hint(err, "set ASSURE_HOME to a folder of yours");
	}
	if (st.st_mode & (S_IWGRP | S_IWOTH)) {
		err_set(err, 0, "state folder: %s can be written by others", path);
		return err_hint(err, "chmod go-w on it");
	}
	return true;
}

bool store_home(char *out, size_t size, bool create, struct err *err)
{
	struct stat st;
	if (!choose_home(out, size, err))
		return false;
	if (lstat(out, &st) != 0) {
		if (errno != ENOENT)
			return err_set(err, errno, "state folder: %s", out);
		if (!create)
			return true; /* no runs yet */
		if (!make_parents(out, err))
			return false;
	}
	return check_home(out, err);
}

bool store_new_run_id(char out[RUN_ID_SIZE], struct err *err)
{
	uint8_t value[16];
	if (getrandom(value, sizeof(value), 0) != (ssize_t)sizeof(value))
		return err_set(err, errno, "run identity: getrandom");
	text_crockford128(value, out);
	return true;
}

bool store_is_run_id(const char *text)
{
	if (strlen(text) != RUN_ID_SIZE - 1)
		return false;
	for (; *text; text++)
		if (text_crockford_canonical(*text) != *text)
			return false;
	return true;
}

bool store_check_name(const char *name, struct err *err)
{
	size_t size = strlen(name);
	bool good = size > 0 && size < STORE_NAME_SIZE && name[0] != '.' && name[0] != '-' &&
		    strcmp(name, "last") != 0 && !store_is_run_id(name) && text_is_utf8(bytes_of(name));
	for (size_t i = 0; good && i < size; i++)
		good = (unsigned char)name[i] > 0x20 && name[i] != '/' && name[i] != 0x7f &&
		       !((unsigned char)name[i] == 0xc2 && (unsigned char)name[i + 1] < 0xa0); /* U+0080 to U+009F */
	if (good)
		return true;
	err_set(err, 0, "run name: %s: not possible", name);
	err_exit_status(err, 64);
	return err_hint(err, "at most 127 bytes without blanks and slashes, not \"last\", no '.' or '-' in front");
}

bool store_sqlite_error(sqlite3 *db, const char *path, const char *what, struct err *err)
{
	int code = db ? sqlite3_errcode(db) : SQLITE_NOMEM;
	switch (code & 0xff) {
	case SQLITE_FULL:
		err_set(err, ENOSPC, "%s: %s", what, path);
		return err_hint(err, "make room on the disk, or remove runs: assure gc");
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		err_set(err, 0, "%s: %s is damaged: %s", what, path, sqlite3_errmsg(db));
		return err_hint(err,
				"keep a copy for inspection (sqlite3 FILE .recover), then remove it: assure rm RUN");
	case SQLITE_IOERR:
		return err_set(err, sqlite3_system_errno(db), "%s: %s: %s", what, path, sqlite3_errmsg(db));
	case SQLITE_BUSY:
		err_set(err, 0, "%s: %s is busy", what, path);
		return err_hint(err, "another process holds the file; try again");
	default:
		return err_set(err, 0, "%s: %s: %s", what, path, db ? sqlite3_errmsg(db) : "out of memory");
	}
}

bool store_is_locked(const char *folder)
{
	char path[STORE_PATH_SIZE];
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
	if (!store_path(path, NULL, folder, STORE_LOCK, NULL))
		return false;
	CLEANUP_FD int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return fd >= 0 && fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

bool store_remove_folder(const char *folder, struct err *err)
{
	DIR *dir = opendir(folder);
	if (!dir)
		return err_set(err, errno, "remove run: %s", folder);
	int failed = 0;
	for (struct dirent *entry; (entry = readdir(dir));) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		/* Only files: a folder in there is not ours, and is kept together with the run. */
		if (unlinkat(dirfd(dir), entry->d_name, 0) != 0 && !failed)
			failed = errno;
	}
	closedir(dir);
	if (rmdir(folder) != 0)
		return err_set(err, failed ? failed : errno, "remove run: %s", folder);
	return true;
}
