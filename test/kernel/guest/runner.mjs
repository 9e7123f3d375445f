// Runs in the guest: does what the test on the outside asks for, one line of JSON each way, until the other side hangs up.
//
// { id, command }  a line for bash, in the checkout -> { id, status, output } with standard output and error as they came
// { id, url }      a page to fetch                  -> { id, status, output }
import { spawn } from 'node:child_process';
import { createReadStream, openSync, readdirSync, readFileSync, writeSync } from 'node:fs';
import { createInterface } from 'node:readline';

const PORTS = '/sys/class/virtio-ports';
const port = readdirSync(PORTS).find((name) => readFileSync(`${PORTS}/${name}/name`, 'utf8').trim() === 'tests');
const [, , checkout] = process.argv;
// It can be opened once.
const fd = openSync(`/dev/${port}`, 'r+');

function answer(message) {
  const bytes = Buffer.from(`${JSON.stringify(message)}\n`);
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
}

function run(command) {
  return new Promise((resolve) => {
    const child = spawn('/bin/bash', ['-c', command], { cwd: checkout, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text));
    child.once('close', (status) => resolve({ status, output }));
  });
}

async function page(url) {
  const response = await fetch(url);
  return { status: response.status, output: await response.text() };
}

answer({ id: 0, status: 0, output: 'ready' });
for await (const line of createInterface({ input: createReadStream('', { fd }) })) {
  const { id, command, url } = JSON.parse(line);
  const answered = command === undefined ? page(url) : run(command);
  answered.then(
    (result) => answer({ id, ...result }),
    (error) => answer({ id, status: -1, output: String(error) }),
  );
}
