// Starts the program of notify-floor.mjs and measures how long a write to its file takes to the message.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client, credentials } from '@grpc/grpc-js';
import { dist } from './dist.mjs';

const { DevicePluginService } = await dist('generated/deviceplugin/v1beta1/api.js');

export async function startNotifyFloor(directory) {
  const [file, socket] = [join(directory, 'fact'), join(directory, 'notify.sock')];
  writeFileSync(file, '0\n');
  const child = fork(fileURLToPath(new URL('notify-floor.mjs', import.meta.url)), [file, socket]);
  await once(child, 'message');
  const client = new Client(`unix:${socket}`, credentials.createInsecure());
  const { path, requestSerialize, responseDeserialize } = DevicePluginService.listAndWatch;
  const stream = client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, {});
  stream.on('error', () => {});
  await once(stream, 'data');
  let heard = () => {};
  stream.on('data', () => heard());
  let turn = 0;
  return {
    /** Milliseconds from the write to the first message after it. */
    async pass() {
      const message = new Promise((resolve) => {
        heard = resolve;
      });
      turn += 1;
      const beganMs = performance.now();
      writeFileSync(file, `${turn}\n`);
      await message;
      return performance.now() - beganMs;
    },
    stop: async () => {
      stream.cancel();
      client.close();
      child.kill('SIGTERM');
      await once(child, 'exit');
    },
  };
}
