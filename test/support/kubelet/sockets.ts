import { randomBytes } from 'node:crypto';
import { linkSync, renameSync } from 'node:fs';
import type { Server } from 'node:net';
import { dirname, join } from 'node:path';

export function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/** Ends a server at that path and leaves its socket file behind, as a process does that is killed. */
export function keepSocketFile(path: string, end: () => void): void {
  const second = join(dirname(dirname(path)), `.${randomBytes(4).toString('hex')}`);
  try {
    linkSync(path, second);
  } catch {
    // Somebody has removed it.
    end();
    return;
  }
  end();
  renameSync(second, path);
}
