/*
 * Runs a command on a pseudo-terminal of a given size: pty COLUMNS ROWS COMMAND [ARGUMENT...]
 *
 * Bytes of the terminal go to the standard output. Lines of the standard input steer it:
 *   i HEX           bytes that the user types
 *   r COLUMNS ROWS  the terminal gets another size
 *   k NUMBER        the command gets a signal
 * Descriptor 3 gets one line when the command ended: "exit STATUS same|changed" or "signal NUMBER same|changed"; the last word says
 * whether the modes of the terminal are those from before.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static int terminal;
static pid_t child;

static void resize(int columns, int rows) {
  struct winsize size = {.ws_row = rows, .ws_col = columns};
  if (ioctl(terminal, TIOCSWINSZ, &size) != 0) perror("TIOCSWINSZ");
}

static void put(int to, const char *bytes, ssize_t count) {
  while (count > 0) {
    ssize_t done = write(to, bytes, count);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) exit(3);
    bytes += done;
    count -= done;
  }
}

static void obey(char *line) {
  int a, b;
  if (line[0] == 'i') {
    for (char *at = line + 2; at[0] && at[1]; at += 2) {
      char pair[3] = {at[0], at[1], 0};
      char byte = (char)strtol(pair, NULL, 16);
      put(terminal, &byte, 1);
    }
  } else if (sscanf(line, "r %d %d", &a, &b) == 2) {
    resize(a, b);
  } else if (sscanf(line, "k %d", &a) == 1) {
    kill(child, a);
  }
}

/* Returns 0 at the end of the terminal. */
static int forward(void) {
  char bytes[65536];
  ssize_t count = read(terminal, bytes, sizeof bytes);
  if (count <= 0) return 0;
  put(1, bytes, count);
  return 1;
}

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  /* What the command leaves behind must not keep the last word from the test. */
  fcntl(3, F_SETFD, FD_CLOEXEC);
  terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0) return 2;
  resize(atoi(argv[1]), atoi(argv[2]));
  /* Kept open, so that the modes can be read after the command. */
  int user = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
  struct termios before, after;
  if (user < 0 || tcgetattr(user, &before) != 0) return 2;
  child = fork();
  if (child == 0) {
    setsid();
    ioctl(user, TIOCSCTTY, 0);
    for (int at = 0; at < 3; at++) dup2(user, at);
    execvp(argv[3], argv + 3);
    perror(argv[3]);
    _exit(127);
  }
  char line[65536];
  size_t length = 0;
  struct pollfd watched[2] = {{.fd = terminal, .events = POLLIN}, {.fd = 0, .events = POLLIN}};
  int status = 0;
  int ended = 0;
  while (!ended) {
    ended = waitpid(child, &status, WNOHANG) == child;
    poll(watched, 2, ended ? 0 : 20);
    if (watched[0].revents & POLLIN) forward();
    if (watched[1].revents & (POLLIN | POLLHUP)) {
      ssize_t count = read(0, line + length, sizeof line - 1 - length);
      if (count <= 0) {
        /* The test is gone. */
        kill(child, SIGKILL);
        watched[1].fd = -1;
        continue;
      }
      length += count;
      line[length] = 0;
      for (char *end; (end = memchr(line, '\n', length)) != NULL;) {
        *end = 0;
        obey(line);
        length -= end + 1 - line;
        memmove(line, end + 1, length);
      }
    }
  }
  while (poll(watched, 1, 0) > 0 && (watched[0].revents & POLLIN) && forward()) {
  }
  tcgetattr(user, &after);
  /* Whether input waits (PENDIN) is no mode. */
  before.c_lflag &= ~PENDIN;
  after.c_lflag &= ~PENDIN;
  int same = before.c_iflag == after.c_iflag && before.c_oflag == after.c_oflag && before.c_cflag == after.c_cflag &&
             before.c_lflag == after.c_lflag && memcmp(before.c_cc, after.c_cc, sizeof before.c_cc) == 0;
  dprintf(3, "%s %d %s\n", WIFEXITED(status) ? "exit" : "signal", WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status),
          same ? "same" : "changed");
  return 0;
}
