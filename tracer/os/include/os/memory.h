/*
 * Reading the memory of a stopped task, through /proc/TID/mem: unlike process_vm_readv(2) it fails at once on a page
 * that a userfaultfd handler of the target withholds.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Read exactly `size` bytes. 0, or an errno value: EFAULT when the range is not all readable. */
int memory_read(int mem, uint64_t address, void *out, size_t size);
/*
 * The same through process_vm_readv(2), which heeds the protection of pages as the task's own calls do, and like these
 * waits for a page that a userfaultfd handler withholds. For what is then done in the task's stead. When too many wait
 * already, through `mem`: a page that is withheld cannot be read then, and one that is protected can.
 */
int memory_read_as_task(int mem, pid_t tid, uint64_t address, void *out, size_t size);
/* Do so many wait that what could not be read may be withheld, and not just absent? */
bool memory_is_crowded(void);
/* Read as much of `size` bytes as there is before the first gap. -1 with errno when that is nothing. */
ssize_t memory_read_some(int mem, uint64_t address, void *out, size_t size);
/*
 * Read as much as there is of `size` bytes, page by page, through process_vm_readv(2), without a descriptor of the memory. For
 * what only the kernel has written so far, like the stack of a program at its exec stop: nobody can withhold a page of it.
 * -1 with errno when that is nothing.
 */
ssize_t memory_read_pages(pid_t tid, uint64_t address, void *out, size_t size);
/*
 * Read a string of at most size-1 bytes and its NUL. Returns the length; -ENAMETOOLONG when no NUL was found within
 * `size` bytes; -EFAULT when memory ended first.
 */
ssize_t memory_read_string(int mem, uint64_t address, char *out, size_t size);
/* The same as memory_read_as_task() reads. */
ssize_t memory_read_string_as_task(int mem, pid_t tid, uint64_t address, char *out, size_t size);
