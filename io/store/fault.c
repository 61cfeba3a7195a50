/* SPDX-License-Identifier: Apache-2.0 */
#include "io/store/fault.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const int numbers[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL};
#define NUMBERS (sizeof numbers / sizeof numbers[0])

static pthread_mutex_t installing = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction before[NUMBERS];

/* Of the thread that works on the store: empty outside. Written before the signal can come. */
static _Thread_local char inside[4096];

static void say(const char *text)
{
    (void)!write(STDERR_FILENO, text, strlen(text));
}

/* Only what a signal handler may call, here and in what it calls. */
void fb_store_fault_mark(void)
{
    char suspect[sizeof inside + sizeof FB_STORE_SUSPECT + 1];
    size_t len = strlen(inside);
    memcpy(suspect, inside, len);
    memcpy(suspect + len, "/" FB_STORE_SUSPECT, sizeof "/" FB_STORE_SUSPECT);
    int fd = open(suspect, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0) close(fd);
}

void fb_store_fault_now(const char *what)
{
    fb_store_fault_mark();
    say("faberio: ");
    say(inside);
    say("/data.mdb: ");
    say(what);
    say("; the next start looks at all of it\n");
    _exit(1);
}

static void faulted(int number)
{
    if (inside[0] != 0) {
        fb_store_fault_now(number == SIGBUS ? "a page of it cannot be read, it was cut or its disk "
                                              "fails"
                                            : "it is damaged");
    }
    /* Not ours: it comes again when this returns, and meets whoever was there before. */
    for (size_t i = 0; i < NUMBERS; i++) {
        if (numbers[i] == number) sigaction(number, &before[i], NULL);
    }
}

/* Again whenever a thread begins, as others may have put theirs in its place. */
static void install(void)
{
    struct sigaction action = {.sa_handler = faulted}, now;
    sigemptyset(&action.sa_mask);
    pthread_mutex_lock(&installing);
    for (size_t i = 0; i < NUMBERS; i++) {
        if (sigaction(numbers[i], NULL, &now) != 0 || now.sa_handler == faulted) continue;
        before[i] = now;
        sigaction(numbers[i], &action, NULL);
    }
    pthread_mutex_unlock(&installing);
}

void fb_store_fault_enter(const char *directory)
{
    install();
    /* A signal that a thread has blocked ends the process without asking anybody. */
    sigset_t unblocked;
    sigemptyset(&unblocked);
    for (size_t i = 0; i < NUMBERS; i++) sigaddset(&unblocked, numbers[i]);
    pthread_sigmask(SIG_UNBLOCK, &unblocked, NULL);
    snprintf(inside, sizeof inside, "%s", directory);
}

void fb_store_fault_enter_again(const char *directory)
{
    size_t len = strnlen(directory, sizeof inside - 1);
    memcpy(inside + 1, directory + 1, len);
    inside[0] = directory[0];
}

void fb_store_fault_leave(void)
{
    inside[0] = 0;
}
