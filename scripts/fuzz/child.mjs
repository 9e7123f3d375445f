// Runs the inputs of one target: node child.mjs TARGET SEED FROM TO. It tells its parent each input before it uses it.
import { seeded } from './random.mjs';
import { targets } from './targets.mjs';

const [name, seed, from, to] = process.argv.slice(2);
const target = await targets[name]();
process.on('unhandledRejection', (error) => fail(error));
process.on('uncaughtException', (error) => fail(error));
const send = (message) => new Promise((resolve) => process.send(message, undefined, {}, resolve));

async function fail(error) {
  await send({ failure: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  await new Promise(() => {});
}

for (let at = Number(from); at < Number(to); at += 1) {
  const input = target.make(seeded(Number(seed) * 1_000_003 + at), at);
  await send({ at, input, ...(at % 50 === 0 ? { rssMiB: process.memoryUsage.rss() / 2 ** 20 } : {}) });
  try {
    await target.check(input);
  } catch (error) {
    await fail(error);
  }
}
await send({ done: true, summary: target.summary?.(), rssMiB: process.memoryUsage.rss() / 2 ** 20 });
process.exit(0);
