// Serves the pages of a fleet, `/<node>` for each node, as they are now. The recorded node comes as the first message; the port goes back.
import { createServer } from 'node:http';
import { createFleet } from './fleet-nodes.mjs';

process.once('message', ({ recorded, startSeconds }) => {
  const fleet = createFleet(recorded, { startSeconds });
  const server = createServer(({ url }, response) => {
    const step = Math.max(0, Math.floor((Date.now() / 1_000 - startSeconds) / recorded.stepSeconds));
    response.writeHead(200, { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' });
    response.end(fleet.pageOf(Number(url.slice(1)), step));
  });
  server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));
});
process.on('disconnect', () => process.exit());
