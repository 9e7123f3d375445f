// Ways to ask the kubelet for a List, each in a process of its own, for the benchmark of one call.
import { execFileSync, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { imageFlags, imageStart } from './shipped.mjs';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/** Starts clients of the kubelet; `ask` of each resolves with what list-client says. Files go below `root`. */
export function listClients(root, kubelet) {
  const children = [];
  return {
    /** A copy of the kubelet's checkpoint that has long been as it is. */
    quietCheckpoint: () => quietCheckpoint(root, kubelet.checkpoint),
    async node(way, checkpoint = '', env = process.env) {
      const child = fork(here('list-client.mjs'), [way, kubelet.podResourcesSocket, checkpoint], {
        execArgv: imageFlags(),
        env: { ...env, ...imageStart().env },
      });
      children.push(child);
      await once(child, 'message');
      const tell = async (message) => {
        child.send(message);
        return (await once(child, 'message'))[0];
      };
      return { ask: () => tell({}), quiet: async (quietMs) => (await tell({ quietMs })).quiet };
    },
    /** Undefined, with a line that says so, where there is no Go or not what the client needs. */
    async go() {
      const program = join(root, 'list-client');
      try {
        execFileSync('go', ['build', '-C', here('../../test/kubelet'), '-o', program, here('list-client.go')], { stdio: 'pipe' });
      } catch (error) {
        console.log(
          `no client in Go: ${String(error.stderr ?? error.message)
            .trim()
            .split('\n')
            .at(-1)}`,
        );
        return undefined;
      }
      const child = spawn(program, [kubelet.podResourcesSocket], { stdio: ['pipe', 'pipe', 'inherit'] });
      children.push(child);
      const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
      const ask = async () => {
        child.stdin.write('\n');
        const [call, since, bytes] = (await lines.next()).value.split(' ').map(Number);
        return { call, since, bytes };
      };
      return { ask };
    },
    async stop() {
      const ends = children.map((child) => once(child, 'exit'));
      for (const child of children) child.kill();
      await Promise.all(ends);
    },
  };
}

function quietCheckpoint(root, checkpoint) {
  const directory = mkdtempSync(join(root, 'device-plugins-'));
  const path = join(directory, 'kubelet_internal_checkpoint');
  copyFileSync(checkpoint, path);
  for (const each of [path, directory]) utimesSync(each, 1, 1);
  return path;
}
