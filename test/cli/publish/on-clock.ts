import { writeFileSync } from 'node:fs';
import type { Ask } from '../../../src/cli/agent-api.ts';
import { type Kubernetes, kubernetesAt } from '../../../src/cli/publish/kubernetes.ts';
import { Publisher } from '../../../src/cli/publish/publisher.ts';
import type { AgentView } from '../../../src/cli/publish/view.ts';
import { createChangeLog } from '../../../src/log/changes.ts';
import { minutes, seconds } from '../../../src/model/duration.ts';
import type { HealthState } from '../../../src/model/health.ts';
import type { DeviceFamily } from '../../../src/probes/family.ts';
import type { WholeBoard, WholeDevice } from '../../../src/server/api/views.ts';
import { VirtualClock } from '../../oracle/virtual-clock.ts';
import { seededRandom } from '../../support/seeded.ts';
import { ApiServer, TOKEN } from './api-server.ts';

export const NODE = 'node-1';

/** Its devices are those of a DRA driver, under their own ids. */
const FAN = { name: 'fan', claimNames: ({ id }: { id: string }) => [{ driver: 'fan.example.com', device: id }] } as unknown as DeviceFamily;

/** A publisher and its API server on a clock that the test moves. */
export class PublisherOnClock {
  readonly api = new ApiServer();
  readonly clock = new VirtualClock();
  /** Messages that were logged, with their details. */
  readonly told: string[] = [];
  view: AgentView | 'away' | undefined;
  /** Called when an answer is there, before the publisher has it. */
  answered: (method: string) => void = () => {};
  ask: Ask = async () => ({});
  kubernetes: Kubernetes = { call: () => Promise.reject(new Error('not started')) };
  #publisher: Publisher | undefined;
  #given: object = {};
  #onTheWire = 0;

  async start(settings: object = {}): Promise<void> {
    this.api.addNode(NODE);
    const server = new URL(await this.api.start());
    const token = this.api.certificates.path('token');
    writeFileSync(token, TOKEN);
    const client = kubernetesAt(server, { 'api-server': '', 'token-file': token, 'ca-file': this.api.certificates.path('ca.crt') });
    this.kubernetes = {
      call: async (...words) => {
        this.#onTheWire += 1;
        return await client.call(...words).finally(() => {
          this.#onTheWire -= 1;
          this.answered(words[0]);
        });
      },
    };
    this.begin(settings);
  }

  /** Another publisher. The one before goes on unless it was stopped. */
  begin(settings: object = this.#given): void {
    this.#given = settings;
    const log = (message: string, fields: object = {}): void => void this.told.push(`${message} ${JSON.stringify(fields)}`);
    const logger = { debug: log, info: log, warn: log, error: log };
    const changes = createChangeLog(logger, () => this.clock.monotonic());
    const parts = { logger, changes, clock: this.clock, random: seededRandom(7), kubernetes: this.kubernetes };
    const off = { 'device-taint-rules': 'off', 'node-taint': 'off', events: false };
    const given = { ...off, node: NODE, families: [FAN], resyncMs: minutes(1), ...settings };
    this.#publisher = new Publisher({ ...parts, ask: (path) => this.ask(path), view: () => this.view }, given);
  }

  /** Lets time pass, with messages of the agent: each ten seconds, as the feed does. */
  async pass(ms: number, heartbeatMs: number = seconds(10)): Promise<void> {
    for (let passedMs = 0; passedMs < ms; passedMs += heartbeatMs) {
      this.#publisher?.wake();
      await this.#settle();
      await this.clock.advance(Math.min(heartbeatMs, ms - passedMs), () => this.#settle());
    }
  }

  async stop(): Promise<void> {
    await this.#publisher?.stop();
  }

  /** Waits until no request is on the wire. No time of the clock passes meanwhile. */
  async #settle(): Promise<void> {
    for (let quiet = 0; quiet < 3; quiet = this.#onTheWire === 0 ? quiet + 1 : 0) await new Promise((resolve) => setImmediate(resolve));
  }
}

/** What an agent says of fans, `fan-0` first. */
export const fans = (...states: readonly ('HEALTHY' | 'UNHEALTHY' | 'UNKNOWN')[]): AgentView => ({
  families: [{ family: 'fan', complete: true }],
  feed: states.map((state, n) => ({ family: 'fan', id: `fan-${n}`, state })),
  board: toldBoard(states.map((state, n) => toldDevice(`fan-${n}`, state === 'UNHEALTHY' ? 'unhealthy' : 'healthy'))),
});

/** A device as the API tells it. */
export const toldDevice = (id: string, state: HealthState, more: Partial<WholeDevice> = {}): WholeDevice => ({
  ...{
    key: `fan/${id}`,
    family: 'fan',
    id,
    name: id,
    kind: 'fan',
    aliases: [],
    readAt: TIME,
    stale: false,
    use: 'free',
    holders: [],
    shown: [],
  },
  health: { state, conditions: [] },
  ...more,
});

const TIME = '2026-03-01T12:00:00.000Z';

/** The board as the API tells it. */
export const toldBoard = (devices: readonly WholeDevice[], more: Partial<WholeBoard> = {}): WholeBoard => ({
  ...{ now: TIME, takenAt: TIME, sequence: 1, kubelet: { state: 'answers', kept: 0 }, families: [], problems: [], unresolved: [] },
  counts: {
    ...{ devices: devices.length, held: 0, heldByParts: 0, pending: 0 },
    states: { healthy: 0, degraded: 0, unhealthy: 0, unknown: 0, missing: 0 },
  },
  devices,
  ...more,
});
