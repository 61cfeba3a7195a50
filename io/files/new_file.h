/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are there whole or not at all, and are never written over what is there: they get
 * their name when all of them is on the disk. */
#ifndef FB_IO_FILES_NEW_FILE_H
#define FB_IO_FILES_NEW_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct fb_new_file {
    int fd; /* to write to, 0600 */
    char path[PATH_MAX], directory[PATH_MAX];
    char hidden[PATH_MAX]; /* its name until then; empty: it has none */
} fb_new_file;

/* 0, or what errno would say: EEXIST when there is something of that name. */
int fb_new_file_open(fb_new_file *file, const char *path);

/* Syncs the file, gives it its name and syncs the directory; or leaves nothing. The descriptor is
 * closed either way. 0, or what errno would say. */
int fb_new_file_keep(fb_new_file *file);

/* Nothing of it stays. */
void fb_new_file_drop(fb_new_file *file);

/* All of the bytes. 0, or what errno would say. */
int fb_write_all(int fd, const void *bytes, size_t len);

/* A name in it is as lasting as its files then. A file system that does not sync directories
 * promises nothing that could be waited for. 0, or what errno would say. */
int fb_directory_sync(const char *directory);

#endif
