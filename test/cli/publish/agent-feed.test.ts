import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { AgentFeed, FIRST_READS_MS } from '../../../src/cli/publish/agent-feed.ts';
import { createChangeLog } from '../../../src/log/changes.ts';
import type { FamilyReading } from '../../../src/model/family-reading.ts';
import { VirtualClock } from '../../oracle/virtual-clock.ts';
import { toldBoard } from './on-clock.ts';

const log = (): void => undefined;
const LOGGER = { debug: log, info: log, warn: log, error: log };
const READ: FamilyReading = { family: 'fan', complete: true };
const NOT_YET: FamilyReading = { family: 'gpu', complete: false };
const DRIVERLESS: FamilyReading = { family: 'gpu', complete: false, problem: 'driver-not-loaded' };

/** A feed over streams that the test writes, on a clock that the test moves. */
class Followed {
  readonly clock = new VirtualClock();
  readonly streams: PassThrough[] = [];
  heard = 0;
  readonly feed = new AgentFeed({
    open: async () => {
      const stream = new PassThrough();
      this.streams.push(stream);
      return { stream: stream as unknown as IncomingMessage };
    },
    ask: async () => ({ answer: { status: 200, body: JSON.parse(JSON.stringify(toldBoard([]))) } }) as never,
    clock: this.clock,
    changes: createChangeLog(LOGGER, () => this.clock.monotonic()),
    heard: () => {
      this.heard += 1;
    },
  });

  async says(...families: readonly FamilyReading[]): Promise<void> {
    const before = this.heard;
    this.streams.at(-1)?.write(`${JSON.stringify({ devices: [], families })}\n`);
    await expect.poll(() => this.heard).toBeGreaterThan(before);
  }

  /** What the publisher would write about. */
  get known(): unknown {
    const view = this.feed.view();
    return view === 'away' ? view : view?.families;
  }
}

describe('the feed of an agent that has just begun', () => {
  it('says nothing before each family was read once, for ten seconds at most, and at once what a family could not read', async () => {
    const one = new Followed();
    one.feed.start();
    await expect.poll(() => one.streams.length).toBe(1);
    await one.says(READ, NOT_YET);
    expect(one.known).toBeUndefined();
    await one.says(READ, DRIVERLESS);
    expect(one.known).toEqual([READ, DRIVERLESS]);
    await one.says(READ, NOT_YET);
    expect(one.known).toBeUndefined();
    const before = one.heard;
    await one.clock.advance(FIRST_READS_MS + 100, async () => undefined);
    expect(one.heard).toBeGreaterThan(before);
    expect(one.known).toEqual([READ, NOT_YET]);
    one.feed.stop();
  });

  it('waits again for an agent that was started anew', async () => {
    const one = new Followed();
    one.feed.start();
    await expect.poll(() => one.streams.length).toBe(1);
    await one.says(READ);
    await one.clock.advance(FIRST_READS_MS + 100, async () => undefined);
    one.streams.at(-1)?.end();
    await expect
      .poll(async () => {
        await one.clock.advance(1_000, async () => undefined);
        return one.streams.length;
      })
      .toBe(2);
    await one.says(READ, NOT_YET);
    expect(one.known).toBeUndefined();
    await one.says(READ, { ...NOT_YET, complete: true });
    expect(one.known).toEqual([READ, { ...NOT_YET, complete: true }]);
    one.feed.stop();
  });
});
