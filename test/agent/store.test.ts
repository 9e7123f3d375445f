import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { Store } from '../../src/agent/store.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';

const snapshot = (sequence: number): Snapshot => ({ sequence }) as Snapshot;

it('notifies subscribers at once, and each follower in a turn of its own, with the latest snapshot only', async () => {
  const store = new Store();
  const told: string[] = [];
  const tell = (name: string) => () => told.push(`${name} ${store.snapshot()?.sequence}`);
  store.follow(tell('first'));
  const leave = store.follow(tell('gone'));
  store.follow(tell('second'));
  store.subscribe(tell('subscriber'));
  store.publish(snapshot(1));
  store.publish(snapshot(2));
  leave();
  expect(told).toEqual(['subscriber 1', 'subscriber 2']);
  await turn();
  expect(told).toEqual(['subscriber 1', 'subscriber 2', 'first 2']);
  await turn();
  expect(told.slice(2)).toEqual(['first 2', 'second 2']);
});
