import type { handleUnaryCall } from '@grpc/grpc-js';
import { type HealthCheckRequest, type HealthCheckResponse, HealthCheckServiceService } from '../../generated/nvhcd/nvhcd.ts';
import { type ReadyRules, readyDevices } from '../../health/journal/ready-devices.ts';
import type { Snapshot } from '../../model/snapshot.ts';
import type { FeedProtocol } from './feed-socket.ts';

export interface NodeCheckDependencies {
  snapshot(): Snapshot | undefined;
  /** Returns why the agent does not work; undefined while it does. */
  fault(): string | undefined;
  readonly rules: ReadyRules;
}

/**
 * The health check of a node that a launcher of training jobs asks. It says the same as `/-/ready/devices`. The protocol has two words, so
 * what is not known fails the check. A failed call would pass it: the launcher then goes on without.
 */
export function nodeCheck({ snapshot, fault, rules }: NodeCheckDependencies): FeedProtocol {
  const failures = (): readonly string[] => {
    const latest = snapshot();
    if (latest === undefined) return ['The first snapshot is not ready yet.'];
    const problem = fault();
    if (problem !== undefined) return [problem];
    const { isReady, lines } = readyDevices(latest, {}, rules);
    return isReady ? [] : lines;
  };
  const runHealthCheck: handleUnaryCall<HealthCheckRequest, HealthCheckResponse> = (_call, reply) => reply(null, responseOf(failures()));
  return (server) => server.addService(HealthCheckServiceService, { runHealthCheck });
}

const responseOf = (failures: readonly string[]): HealthCheckResponse => ({
  success: failures.length === 0,
  exitCode: failures.length === 0 ? 0 : 1,
  output: JSON.stringify({ fail_count: failures.length, failed_checks: failures }),
  error: '',
});
