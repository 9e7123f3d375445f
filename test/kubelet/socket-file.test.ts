import { mkdirSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/host/clock.ts';
import { type SocketState, socketAt, watchSocket } from '../../src/host/fs/socket-file.ts';
import { changes } from './support/changes.ts';
import { makeNode } from './support/node.ts';

describe('a socket file', () => {
  it('has another identity for each socket bound at its path', async () => {
    const { kubelet } = makeNode();
    const identities = new Set<string>();
    for (let start = 0; start < 20; start += 1) {
      await kubelet.restart();
      const state = socketAt(kubelet.podResourcesSocket);
      if (state.kind === 'socket') identities.add(state.identity);
    }
    expect(identities.size).toBe(20);
  });

  it('keeps its identity when its mode changes', async () => {
    const { kubelet } = makeNode();
    await kubelet.start();
    const before = socketAt(kubelet.podResourcesSocket);
    kubelet.setSocketMode(0o600);
    expect(socketAt(kubelet.podResourcesSocket)).toEqual(before);
  });

  it('is watched for replacement, removal and return', async () => {
    const { kubelet } = makeNode();
    await kubelet.start();
    const states: SocketState[] = [];
    const { onChange, until } = changes();
    const watch = watchSocket(
      kubelet.podResourcesSocket,
      (state) => {
        states.push(state);
        onChange();
      },
      systemClock,
    );
    try {
      const first = socketAt(kubelet.podResourcesSocket);
      await kubelet.restart();
      await until(() => states.at(-1)?.kind === 'socket');
      expect(states.at(-1)).not.toEqual(first);
      await kubelet.close();
      await until(() => states.at(-1)?.kind === 'missing');
      mkdirSync(kubelet.podResourcesSocket);
      await until(() => states.at(-1)?.kind === 'not-a-socket');
      rmSync(dirname(kubelet.podResourcesSocket), { recursive: true });
      await until(() => states.at(-1)?.kind === 'missing');
      await kubelet.start();
      await until(() => states.at(-1)?.kind === 'socket');
    } finally {
      watch.close();
    }
  });
});
