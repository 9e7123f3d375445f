// Loaded into an agent with `--import`: counts what it writes and syncs, and answers each message with the counts.
import { open } from 'node:fs/promises';
import { isMainThread } from 'node:worker_threads';

const counts = { syncs: 0, writes: 0, bytes: 0 };
const file = await open('/dev/null');
const prototype = Object.getPrototypeOf(file);
await file.close();

for (const name of ['sync', 'datasync']) {
  const own = prototype[name];
  prototype[name] = function counted() {
    counts.syncs += 1;
    return own.call(this);
  };
}
// Each also stands for appendFile, which calls it or is it.
for (const name of ['writeFile', 'appendFile']) {
  const own = prototype[name];
  prototype[name] = function counted(data, ...rest) {
    if (prototype.isInside !== true) {
      counts.writes += 1;
      counts.bytes += Buffer.byteLength(data);
    }
    prototype.isInside = true;
    const done = own.call(this, data, ...rest);
    prototype.isInside = false;
    return done;
  };
}
// A thread has no channel, and writes no state.
if (isMainThread) {
  process.on('message', () => process.send(counts));
  process.channel.unref();
}
