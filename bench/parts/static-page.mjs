// A server that knows one page: what node:http itself costs. The page comes as the first message; the port goes back.
import { createServer } from 'node:http';
import { gzipSync } from 'node:zlib';

process.once('message', ({ page }) => {
  const plain = Buffer.from(page);
  const compressed = gzipSync(plain, { level: 1 });
  const server = createServer((request, response) => {
    const isGzip = request.headers['accept-encoding']?.includes('gzip');
    response.writeHead(200, { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8', ...(isGzip && { 'Content-Encoding': 'gzip' }) });
    response.end(isGzip ? compressed : plain);
  });
  server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));
});
process.on('disconnect', () => process.exit());
