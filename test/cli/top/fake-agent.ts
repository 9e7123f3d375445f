import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Board } from '../../../src/board/board.ts';
import { eventsView, jsonText, readingViews } from '../../../src/server/api/views.ts';
import { fixedSnapshot, NOW_MS, toldBoard } from './fixed-board.ts';

/** What an agent serves to `top`, from plain data, so that each screen is always the same. */
export class FakeAgent {
  board: unknown = toldBoard();
  readonly #server: Server;

  constructor() {
    this.#server = createServer(({ url = '' }, response) => {
      const body = this.#answer(url);
      response.writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json' });
      response.end(jsonText(body ?? { error: { code: 'unknown' } }));
    });
  }

  #answer(url: string): unknown {
    if (url === '/api/v1/devices?readings=shown') return this.board;
    if (url === '/api/v1/events') return EVENTS;
    if (url === '/api/v1/devices/trends') return { trends: { 'infiniband/mlx5_0': TRENDS[0]?.trend } };
    if (url.endsWith('/trends')) return { trends: TRENDS };
    const [, , , , family, id] = url.split('/').map(decodeURIComponent);
    const state = fixedSnapshot().devices.find(({ device }) => device.family === family && device.id === id);
    return state && { ...state.device, readings: readingViews(state.readings) };
  }

  /** Listens on a port of the loopback, and returns its address. */
  async listen(port = 0): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(port, '127.0.0.1', resolve));
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Ends like a process that is killed: open connections break. */
  async die(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** The board with another name of a pod, as if it came from an agent. */
export const renamed = (board: Board, from: string, to: string): Board => JSON.parse(JSON.stringify(board).replaceAll(from, to));

const EVENTS = eventsView([
  {
    id: 3,
    timeMs: NOW_MS - 720_000,
    device: 'infiniband/mlx5_0',
    family: 'infiniband',
    transition: 'raised',
    condition: 'PortDown',
    instance: '1',
    severity: 'fatal',
    reason: 'LinkDown',
    message: 'Port 1 is down; its physical state is Polling.',
    remedy: 'check-cable',
    holders: [{ namespace: 'training', pod: 'mpi-3-0', container: 'rank', resource: 'device-agent.dev/pf', deviceId: 'mlx5_0' }],
  },
  {
    id: 4,
    timeMs: NOW_MS - 720_000,
    device: 'infiniband/mlx5_0',
    family: 'infiniband',
    transition: 'state',
    condition: 'PortDown',
    from: 'healthy',
    to: 'unhealthy',
    reason: 'LinkDown',
    message: 'Port 1 is down; its physical state is Polling.',
    remedy: 'check-cable',
    holders: [],
  },
]);

const TRENDS = [{ label: 'In', trend: [null, null, 0, 1e9, 5e9, 11e9, 23e9, 23e9, null, 23e9] }];
