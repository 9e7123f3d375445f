// The agent's exposition and web server in a process of their own, without probes: told to, they are given the next snapshot.
import { dist } from './dist.mjs';
import { createSnapshots, families } from './scrape-snapshots.mjs';

const [{ createExposition }, { createServer }, { webOptions }, { defaultValues }, { createLogger }, { Store }] = await Promise.all(
  ['metrics/exposition.js', 'server/server.js', 'server/options.js', 'model/options.js', 'log/logger.js', 'agent/store.js'].map(dist),
);

process.once('disconnect', () => process.exit());
const next = await createSnapshots(Number(process.argv[2]));
const store = new Store();
store.publish(next());
const stats = () => ({ nowMs: Date.now(), version: 'bench', podResourcesRequests: [], podResourcesDurations: [] });
const server = createServer({
  exposition: createExposition({ families, snapshot: () => store.snapshot(), agent: stats }),
  store,
  status: () => ({}),
  families: [],
  version: 'bench',
  options: { ...defaultValues(webOptions), 'listen-address': '127.0.0.1:0' },
  logger: createLogger({ level: 'error', format: 'json' }),
});
process.on('message', () => {
  store.publish(next());
  process.send('published');
});
process.send({ port: Number(new URL(await server.listen()).port) });
