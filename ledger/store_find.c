#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "store_read.h"

bool store_each_run(const char *home, bool (*visit)(void *context, const char *id), void *context, struct err *err)
{
	char path[STORE_PATH_SIZE];
	if (!store_path(path, err, home, "runs", NULL))
		return false;
	DIR *dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? true : err_set(err, errno, "runs: %s", path);
	for (struct dirent *entry; (entry = readdir(dir));)
		if (store_is_run_id(entry->d_name) && !visit(context, entry->d_name))
			break;
	closedir(dir);
	return true;
}

static bool run_exists(const char *home, const char *id)
{
	char path[STORE_PATH_SIZE];
	struct stat st;
	return store_path(path, NULL, home, "runs", id, NULL) && lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool find_by_name(const char *home, const char *name, char id[RUN_ID_SIZE])
{
	char path[STORE_PATH_SIZE];
	if (!store_check_name(name, NULL) || !store_path(path, NULL, home, "names", name, NULL))
		return false;
	ssize_t size = readlink(path, id, RUN_ID_SIZE);
	if (size != RUN_ID_SIZE - 1)
		return false;
	id[size] = '\0';
	return store_is_run_id(id) && run_exists(home, id);
}

struct prefix_search {
	char prefix[RUN_ID_SIZE];
	size_t size;
	size_t found;
	char id[RUN_ID_SIZE], second[RUN_ID_SIZE];
};

static bool match_prefix(void *context, const char *id)
{
	struct prefix_search *search = context;
	if (strncmp(id, search->prefix, search->size) != 0)
		return true;
	strcpy(search->found++ ? search->second : search->id, id);
	return search->found < 2;
}

static bool canonical_prefix(const char *which, struct prefix_search *search)
{
	for (; *which; which++) {
		char c = text_crockford_canonical(*which);
		if (!c || search->size >= RUN_ID_SIZE - 1)
			return false;
		search->prefix[search->size++] = c;
	}
	return search->size >= 4;
}

static bool keep_first(void *context, const struct run_summary *summary)
{
	strcpy(context, summary->id);
	return false;
}

static bool not_found(const char *which, struct err *err)
{
	err_set(err, 0, "run: %s: no such run", which);
	return err_hint(
	    err, "assure runs lists them; a run is named by 4 or more of its first characters, its name, or \"last\"");
}

bool store_find(const char *home, const char *which, char id[RUN_ID_SIZE], struct err *err)
{
	struct prefix_search search = {.size = 0};
	id[0] = '\0';
	if (strcmp(which, "last") == 0) {
		if (!run_list(home, keep_first, id, err))
			return false;
		return id[0] ? true : not_found(which, err);
	}
	if (find_by_name(home, which, id))
		return true;
	if (!canonical_prefix(which, &search))
		return not_found(which, err);
	if (!store_each_run(home, match_prefix, &search, err))
		return false;
	if (search.found == 0)
		return not_found(which, err);
	if (search.found > 1) {
		err_set(err, 0, "run: %s: more than one run begins so", which);
		return err_hint(err, "type more characters: %s or %s", search.id, search.second);
	}
	strcpy(id, search.id);
	return true;
}

struct short_search {
	const char *id;
	size_t size;
};

static bool widen(void *context, const char *other)
{
	struct short_search *search = context;
	size_t common = 0;
	if (strcmp(other, search->id) == 0)
		return true;
	while (search->id[common] && other[common] == search->id[common])
		common++;
	if (common + 1 > search->size)
		search->size = common + 1;
	return true;
}

size_t run_short_id(const char *home, const char *id)
{
	struct short_search search = {.id = id, .size = 4};
	store_each_run(home, widen, &search, NULL);
	return search.size;
}

/* A name may be known only by its link when the file is damaged, so every link is looked at. */
static void remove_names(const char *home, const char *id)
{
	char path[STORE_PATH_SIZE], text[RUN_ID_SIZE];
	if (!store_path(path, NULL, home, "names", NULL))
		return;
	DIR *dir = opendir(path);
	if (!dir)
		return;
	for (struct dirent *entry; (entry = readdir(dir));) {
		ssize_t size = readlinkat(dirfd(dir), entry->d_name, text, sizeof(text));
		if (size == RUN_ID_SIZE - 1 && memcmp(text, id, RUN_ID_SIZE - 1) == 0)
			unlinkat(dirfd(dir), entry->d_name, 0);
	}
	closedir(dir);
}

bool run_remove(const char *home, const char *which, struct err *err)
{
	char id[RUN_ID_SIZE], folder[STORE_PATH_SIZE];
	if (!store_find(home, which, id, err) || !store_path(folder, err, home, "runs", id, NULL))
		return false;
	if (store_is_locked(folder)) {
		err_set(err, 0, "remove run: %s: it is still running", which);
		return err_hint(err, "wait for its end, or end it");
	}
	remove_names(home, id);
	return store_remove_folder(folder, err);
}

bool run_find(const char *home, const char *which, char id[RUN_ID_SIZE], struct err *err)
{
	return store_find(home, which, id, err);
}

bool run_folder(const char *home, const char *id, char *out, size_t size)
{
	char path[STORE_PATH_SIZE];
	if (!store_path(path, NULL, home, "runs", id, NULL) || strlen(path) >= size)
		return false;
	strcpy(out, path);
	return true;
}
