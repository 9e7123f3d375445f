// Who is scraped: the agent, a static page, and node_exporter with as many series.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startExporter } from './peers.mjs';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const CPUS = 40;
/** Duration and success of its one collector. */
const OWN_SERIES = 2;

export async function startStatic(folder, page) {
  const file = join(folder, 'page');
  writeFileSync(file, page);
  const child = fork(here('scrape-static.mjs'), [file]);
  const [{ port }] = await once(child, 'message');
  return { pid: child.pid, port, stop: () => end(child) };
}

/** The agent's exposition and server; `publish` gives them a snapshot that differs from the one before as after a refresh. */
export async function startBare(hcas) {
  const child = fork(here('scrape-agent.mjs'), [String(hcas)]);
  const [{ port }] = await once(child, 'message');
  const publish = async () => {
    child.send('publish');
    await once(child, 'message');
  };
  return { pid: child.pid, port, publish, stop: () => end(child) };
}

/**
 * The cheapest way found to make node_exporter serve so many series: one file, a table of interrupts, which it parses at each
 * scrape. Its names, labels and values make lines about as long as the agent's.
 */
export function startTable(folder, series, exporter) {
  const header = Array.from({ length: CPUS }, (_, cpu) => `CPU${cpu}`).join(' ');
  const line = (row) =>
    `${row}: ${Array.from({ length: CPUS }, (_, cpu) => 10_000 * row + cpu).join(' ')} PCI-MSI 524288-edge mlx5_comp${row}`;
  const procfs = join(folder, 'proc');
  mkdirSync(procfs, { recursive: true });
  writeFileSync(
    join(procfs, 'interrupts'),
    `${header}\n${Array.from({ length: Math.round((series - OWN_SERIES) / CPUS) }, (_, row) => line(row)).join('\n')}\n`,
  );
  return startExporter(exporter, ['--collector.interrupts', `--path.procfs=${procfs}`]);
}

/** A process that scrapes; `turn` resolves with what it measured and what `server` used meanwhile. */
export function startClient() {
  const child = fork(here('scrape-client.mjs'));
  const next = async () => {
    const [message] = await once(child, 'message');
    if (message.error !== undefined) throw new Error(message.error);
    return message;
  };
  return {
    /** What `server` used from its first connection's first answer to the last answer; from step to step, less what `before` takes. */
    async turn(task, { cpu, before }) {
      child.send({ ...task, isStepwise: before !== undefined });
      let cpuMs = 0;
      const begun = performance.now();
      for (let message = await next(); ; ) {
        if (!message.ready) return { ...message, cpuMs, wallMs: performance.now() - begun };
        await before?.();
        const cpuBefore = cpu();
        child.send({ go: true });
        message = await next();
        cpuMs += cpu() - cpuBefore;
      }
    },
    stop: () => end(child),
  };
}

async function end(child) {
  child.kill('SIGTERM');
  await once(child, 'exit');
}
