// Who asks the agent during a soak: scrapers, people with a browser, and a second caller of the plugin beside the kubelet.
import { readdirSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { join } from 'node:path';
import { dist } from '../parts/dist.mjs';

const { PluginConnection } = await dist('sim/kubelet/plugin-connection.js');

const FORMATS = [
  { accept: 'text/plain;version=0.0.4' },
  { accept: 'application/openmetrics-text;version=1.0.0' },
  { accept: 'text/plain;version=0.0.4', 'accept-encoding': 'gzip' },
  { accept: 'application/openmetrics-text;version=1.0.0', 'accept-encoding': 'gzip' },
];
const PATHS = [
  '/',
  '/api/v1/devices',
  '/devices/infiniband/mlx5_0',
  '/api/v1/allocations',
  '/api/v1/events',
  '/api/v1/status',
  '/api/v1/devices/infiniband/mlx5_1',
  '/healthz',
  '/readyz',
];

/** Each `step` asks once and resolves when the answer is read. `failures` counts unexpected answers. */
export function makeTraffic(port, { pluginDirectory }) {
  const failures = new Map();
  const failed = (what) => failures.set(what, (failures.get(what) ?? 0) + 1);
  return {
    failures,
    scrapes: scrapes(port, failed),
    pages: pages(port, failed),
    calls: pluginCalls(pluginDirectory),
  };
}

/** Over a kept connection; each fifth one over a connection of its own, each seventh one is left in the middle of the answer. */
function scrapes(port, failed) {
  const kept = new Agent({ keepAlive: true });
  let count = 0;
  return {
    async step() {
      count += 1;
      const agent = count % 5 === 0 ? false : kept;
      const status = await ask({ port, path: '/metrics', agent, headers: FORMATS[count % FORMATS.length] }, count % 7 === 0);
      if (status !== 200) failed(`a scrape: ${status}`);
    },
    end: () => kept.destroy(),
  };
}

/** All pages, and names that were never asked for and are not there. */
function pages(port, failed) {
  const kept = new Agent({ keepAlive: true });
  let count = 0;
  return {
    async step() {
      count += 1;
      const isUnknown = count % 4 === 0;
      const path = isUnknown ? `/api/v1/devices/infiniband/none-${count}` : PATHS[count % PATHS.length];
      const status = await ask({ port, path, agent: kept, headers: {} });
      if (status !== (isUnknown ? 404 : 200)) failed(`${path}: ${status}`);
    },
    end: () => kept.destroy(),
  };
}

/** Resolves with the status, or with the name of an error. */
function ask(options, isLeft = false) {
  return new Promise((resolve) => {
    get({ host: '127.0.0.1', ...options }, (response) => {
      response.on('error', () => {});
      if (isLeft) response.once('data', () => response.destroy());
      else response.resume();
      response.on('close', () => resolve(response.statusCode));
    }).on('error', (error) => resolve(error.code ?? error.message));
  });
}

/** Opens the list a second time, asks for a choice and for devices, and goes away again. The agent may close its socket at any moment. */
function pluginCalls(pluginDirectory) {
  let isBusy = false;
  const ownSocket = () => readdirSync(pluginDirectory).find((name) => /^device-agent-[0-9a-f]{8}-soak.example_vf/.test(name));
  const call = async (socket) => {
    const connection = new PluginConnection(join(pluginDirectory, socket));
    try {
      await connection.dial();
      const devices = await new Promise((resolve) => connection.follow({ list: resolve, ended: () => resolve([]) }));
      const ids = devices.filter(({ health }) => health === 'Healthy').map(({ ID }) => ID);
      if (ids.length > 2) await connection.allocate(await connection.prefer(ids, [], 2));
      // The plugin has to refuse this one.
      await connection.allocate(['none']);
    } finally {
      connection.close();
    }
  };
  return {
    async step() {
      const socket = ownSocket();
      if (isBusy || socket === undefined) return;
      isBusy = true;
      await call(socket).catch(() => {});
      isBusy = false;
    },
  };
}
