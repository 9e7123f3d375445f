// What node:http takes to send a page that is there already: the bytes of a file, plain and compressed, from memory.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { gzipSync } from 'node:zlib';

process.once('disconnect', () => process.exit());
const plain = readFileSync(process.argv[2]);
const zipped = gzipSync(plain, { level: 1 });
const server = createServer((request, response) => {
  const isZipped = request.headers['accept-encoding'] === 'gzip';
  const body = isZipped ? zipped : plain;
  response.writeHead(200, {
    'Content-Type': 'text/plain; version=0.0.4',
    'Content-Length': body.length,
    ...(isZipped && { 'Content-Encoding': 'gzip' }),
  });
  response.end(body);
});
server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));
