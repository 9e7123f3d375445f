import { createLogger } from '../../src/log/logger.ts';
import { createExposition } from '../../src/metrics/page/exposition.ts';
import { defaultValues } from '../../src/model/options.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import { createServer, type ServerLimits, serverLimits, type WebServer } from '../../src/server/http/server.ts';
import { type WebOptions, webOptions } from '../../src/server/options.ts';
import type { ServerDependencies } from '../../src/server/parts.ts';
import { families, snapshot as sample, stats } from '../metrics/sample.ts';

export interface Started {
  readonly url: string;
  readonly server: WebServer;
  /** What the server logged. */
  readonly log: readonly string[];
}

export interface StartOptions {
  readonly snapshot?: () => Snapshot | undefined;
  readonly options?: Partial<WebOptions>;
  readonly parts?: Partial<ServerDependencies>;
  readonly limits?: Partial<ServerLimits>;
}

/** A real server on a free port of the loopback, showing the sample snapshot unless another one is given. */
export async function start({ snapshot = () => sample, options, parts, limits }: StartOptions = {}): Promise<Started> {
  const log: string[] = [];
  const server = createServer(
    {
      exposition: createExposition({ families, snapshot, agent: () => stats }),
      store: { snapshot },
      status: () => ({ version: stats.version }),
      families,
      version: stats.version,
      node: 'node-1',
      options: { ...defaultValues(webOptions), 'listen-address': '127.0.0.1:0', ...options },
      logger: createLogger({ level: 'info', format: 'json' }, { write: (line) => log.push(line) }),
      ...parts,
    },
    { ...serverLimits, ...limits },
  );
  return { url: await server.listen(), server, log };
}
