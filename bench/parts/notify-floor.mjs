// The limit for a fact on its way to the kubelet: a process that watches one file and, when told by inotify that it changed, sends an
// empty message on a gRPC stream. It reads nothing and judges nothing. Arguments: file, socket.
import { watch } from 'node:fs';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { dist } from './dist.mjs';

const { DevicePluginService } = await dist('generated/deviceplugin/v1beta1/api.js');
const [file, socket] = process.argv.slice(2);

const streams = new Set();
const refuse = (_, callback) => callback({ code: 12 });
const server = new Server();
server.addService(DevicePluginService, {
  listAndWatch: (stream) => {
    streams.add(stream);
    stream.write({ devices: [] });
  },
  getDevicePluginOptions: refuse,
  getPreferredAllocation: refuse,
  allocate: refuse,
  preStartContainer: refuse,
});
watch(file, () => {
  for (const stream of streams) stream.write({ devices: [] });
});
server.bindAsync(`unix:${socket}`, ServerCredentials.createInsecure(), (error) => process.send({ ready: error === null }));
