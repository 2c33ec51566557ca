/*
 * Folders that a test makes for itself.
 */
#pragma once

#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>

static int folder_remove_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
	(void)status;
	(void)type;
	(void)place;
	return remove(path);
}

/* Remove a folder and everything in it; links are not followed. */
static bool folder_remove(const char *path)
{
	return nftw(path, folder_remove_entry, 16, FTW_DEPTH | FTW_PHYS) == 0;
}
