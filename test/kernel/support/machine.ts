import { seriesValue } from '../../support/serve.ts';
import { Guest } from './guest.ts';

const AGENT = 'http://127.0.0.1:9835';
const LOG = '/run/agent.log';
const CONFIG = '/run/agent.yaml';
/** Emulation is slow, more so on a busy machine: these say only when something counts as never. */
const SEEN_MS = 120_000;
const STARTED = `for _ in $(seq 600); do grep -q '"address"' ${LOG} && exit 0; sleep 0.1; done; cat ${LOG}; exit 1`;

/** A guest with the bundled agent in it, which is how the agent is shipped. */
export class KernelMachine extends Guest {
  /** `config` is text of a configuration file. */
  async startAgent(config: string): Promise<void> {
    const flags = `--config.file=${CONFIG} --web.listen-address=127.0.0.1:9835 --state.file= --log.format=json`;
    await this.run(`cat > ${CONFIG} <<'END'\n${config}\nEND`);
    await this.#start(`serve ${flags}`, STARTED);
  }

  /** Starts the agent on a simulated node of files, with more options. */
  async startDemo(options: string): Promise<void> {
    const started = `for _ in $(seq 3000); do grep -q 'Ctrl-C' ${LOG} && exit 0; sleep 0.1; done; cat ${LOG}; exit 1`;
    await this.#start(`demo --web.listen-address=127.0.0.1:9835 ${options}`, started);
  }

  async #start(words: string, started: string): Promise<void> {
    await this.run(`"$node" dist-bundle/main.js ${words} > ${LOG} 2>&1 & echo $! > /run/agent.pid`);
    await this.run(started);
  }

  async page(): Promise<string> {
    return (await this.fetch(`${AGENT}/metrics`)).output;
  }

  /** The metrics page as soon as it satisfies a condition. */
  async until(what: string, condition: (page: string) => boolean | Promise<boolean>): Promise<string> {
    const endMs = Date.now() + SEEN_MS;
    for (;;) {
      const page = await this.page();
      if (await condition(page)) return page;
      if (Date.now() > endMs) throw new Error(`never seen: ${what}\n${readingsOf(page).join('\n')}\n${await this.run(`cat ${LOG}`)}`);
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }

  /** The page after the next refresh that began after now. */
  async refreshed(family = 'infiniband'): Promise<string> {
    const runs = (page: string): number => seriesValue(page, 'device_agent_probe_runs_total', { family }) ?? 0;
    const before = runs(await this.page());
    // The agent's totals can be one run ahead of the readings on the same page.
    return this.until('three more refreshes', (page) => runs(page) >= before + 3);
  }

  /** Log lines so far. */
  async log(): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const lines = (await this.run(`cat ${LOG}`)).trim().split('\n');
    return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  /** How many files below a directory of RDMA devices the agent keeps open; of all when no name is given. */
  async keptFiles(device = ''): Promise<number> {
    // Its readers are its children.
    const processes = 'for p in $(cat /run/agent.pid) $(pgrep -P $(cat /run/agent.pid)); do ls -l /proc/$p/fd; done';
    return Number(await this.run(`(${processes}) 2> /dev/null | grep -c '/infiniband/${device}' || true`));
  }

  async descriptors(): Promise<number> {
    return Number(await this.run('ls /proc/$(cat /run/agent.pid)/fd | wc -l'));
  }
}

/** Series of a page that are readings of RDMA devices or of network functions, whose name may be given. */
export function readingsOf(page: string, device?: string): readonly string[] {
  return page
    .split('\n')
    .filter((line) => /^device_(infiniband_|netdev_|link_|errors_|received_|transmitted_)/.test(line))
    .filter((line) => device === undefined || line.includes(`device="${device}"`));
}
