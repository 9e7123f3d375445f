import { type ServedAgent, serve } from '../support/serve.ts';
import { Page } from './page.ts';

/** A device as the API tells it, as far as the stages look at it. */
export interface ToldDevice {
  readonly id: string;
  readonly kind: string;
  readonly parent?: string;
  readonly numaNode?: number;
  readonly gpuInstance?: number;
  readonly computeInstance?: number;
  readonly peers?: readonly { readonly device: string; readonly links: number }[];
  readonly holders: readonly { readonly pod?: string; readonly namespace?: string }[];
  readonly processes?: readonly { readonly pid: number; readonly memoryUsedBytes?: number; readonly podUid?: string }[];
  readonly health: { readonly state: string; readonly conditions: readonly { readonly type: string; readonly status: unknown }[] };
}

const START_MS = 60_000;
const LOOK_MS = 100;

/** The built agent on this machine, with the options of one stage. */
export class Agent {
  readonly #served: ServedAgent;

  private constructor(served: ServedAgent) {
    this.#served = served;
  }

  /** Starts it, and waits until its page has all these GPUs. */
  static async start(options: readonly string[], uuids: readonly string[]): Promise<Agent> {
    const agent = new Agent(await serve(options));
    try {
      await agent.until(
        (page) => uuids.every((device) => page.value('device_last_read_timestamp_seconds', { device }) !== undefined),
        START_MS,
      );
    } catch (error) {
      await agent.stop();
      throw error;
    }
    return agent;
  }

  get pid(): number {
    return this.#served.child.pid as number;
  }

  /** Sends a request that changes the agent; returns its status. */
  async post(path: string): Promise<number> {
    return (await fetch(`${this.#served.url}${path}`, { method: 'POST' })).status;
  }

  async page(): Promise<Page> {
    return new Page(await this.#served.metrics());
  }

  async devices(): Promise<readonly ToldDevice[]> {
    const answer = await fetch(`${this.#served.url}/api/v1/devices`);
    return ((await answer.json()) as { readonly devices: readonly ToldDevice[] }).devices;
  }

  /** The events since the start, as the API has them. */
  async events(): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const answer = (await (await fetch(`${this.#served.url}/api/v1/events`)).json()) as {
      readonly events: readonly Record<string, unknown>[];
    };
    return answer.events;
  }

  async device(id: string): Promise<ToldDevice | undefined> {
    return (await this.devices()).find((each) => each.id === id);
  }

  /** Waits for a page; fails with the log of the agent when it does not come. */
  async until(isIt: (page: Page) => boolean, timeoutMs: number): Promise<Page> {
    const page = await untilTrue(() => this.page(), isIt, timeoutMs);
    if (page === undefined)
      throw new Error(`the page did not come within ${timeoutMs} ms; the agent logged:\n${this.#served.log().slice(-2_000)}`);
    return page;
  }

  /** Waits until a device is told so. Returns what is told in the end, whether it is so or not. */
  async untilDevice(id: string, isIt: (device: ToldDevice) => boolean, timeoutMs: number): Promise<ToldDevice | undefined> {
    let last: ToldDevice | undefined;
    await untilTrue(
      async () => {
        last = await this.device(id);
        return last;
      },
      (device) => device !== undefined && isIt(device),
      timeoutMs,
    );
    return last;
  }

  async stop(signal?: NodeJS.Signals): Promise<void> {
    await this.#served.stop(signal);
  }
}

async function untilTrue<T>(look: () => Promise<T>, isIt: (seen: T) => boolean, timeoutMs: number): Promise<T | undefined> {
  const endMs = Date.now() + timeoutMs;
  for (;;) {
    const seen = await look();
    if (isIt(seen)) return seen;
    if (Date.now() > endMs) return undefined;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}
