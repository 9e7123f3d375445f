// What stops answering: files and programs. Each function returns one that makes it answer again.
import { execFileSync } from 'node:child_process';
import { chmodSync, closeSync, constants, openSync, readFileSync, renameSync, truncateSync, writeFileSync } from 'node:fs';

/** Who opens one of the files waits. Gives the way to have them answer: a plain file is in each place before the waiting ends. */
export function hangFiles(paths) {
  const before = paths.map((path) => readFileSync(path, 'utf8'));
  const made = paths.map((path) => `${path}.fifo`);
  execFileSync('mkfifo', made);
  for (const [n, path] of paths.entries()) {
    // As the kernel does with an attribute that is removed: whoever has it open reads nothing of it.
    truncateSync(path);
    renameSync(made[n], path);
  }
  return () => {
    for (const [n, path] of paths.entries()) {
      // Whoever waits is let in, and reads nothing once the writer has gone. Nobody has to wait.
      const writer = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
      writeFileSync(`${path}.new`, before[n]);
      renameSync(`${path}.new`, path);
      closeSync(writer);
    }
  };
}

/** A program that does not end when it is asked to. */
export function hangCommand(path) {
  const before = readFileSync(path, 'utf8');
  const put = (text) => {
    writeFileSync(`${path}.new`, text);
    chmodSync(`${path}.new`, 0o755);
    renameSync(`${path}.new`, path);
  };
  put('#!/bin/sh\ntrap "" TERM\nwhile :; do sleep 1; done\n');
  return () => put(before);
}
