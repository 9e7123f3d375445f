import type { Snapshot } from '../../model/snapshot.ts';
import { type Ask, type Asked, askFor } from '../agent-api.ts';
import type { CommandContext, Ending } from '../context.ts';
import { withProgress } from '../progress.ts';
import { agentSettings } from '../settings.ts';
import { readVersion } from '../version.ts';
import type { Check, CheckResult } from './check.ts';
import { checkClaims } from './claim-checks.ts';
import { checkExpected } from './expected-check.ts';
import { checkFamilies } from './family-checks.ts';
import { checkHost } from './host-check.ts';
import { checkCheckpoint, checkPodResources } from './kubelet-checks.ts';
import { checkRoots } from './path-checks.ts';
import { checkPlugin } from './plugin-check.ts';
import { checkClock, checkNode, checkUser } from './process-checks.ts';
import { formatReport } from './report.ts';
import { checkDevices, checkRunningAgent } from './standing-checks.ts';
import { checkState } from './state-check.ts';
import { checkListenAddress, checkWebConfig } from './web-check.ts';

const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

/** All checks, in the order of the report. */
export const checks: readonly Check[] = [
  () => checkNode(),
  checkUser,
  () => checkClock(),
  checkHost,
  checkRoots,
  checkPodResources,
  checkCheckpoint,
  checkPlugin,
  checkState,
  checkFamilies,
  checkExpected,
  checkWebConfig,
  checkDevices,
  checkClaims,
  checkListenAddress,
  checkRunningAgent,
];

export async function runDoctor(context: CommandContext): Promise<Ending> {
  const { configuration, families, output, options } = context;
  const ask = once(askFor(context));
  let isStuck = false;
  const stuck = (): void => {
    isStuck = true;
  };
  let collected: Promise<Snapshot> | undefined;
  const collect = (): Promise<Snapshot> => {
    collected ??= (async () => {
      const { collectOnce } = await import('../../agent/agent.ts');
      const { snapshot, ended } = await collectOnce(agentSettings(configuration, families), {
        logger: SILENT,
        version: readVersion().version,
      });
      if (!ended) stuck();
      return snapshot;
    })();
    return collected;
  };
  const results: CheckResult[] = (
    await withProgress('checking the node', Promise.all(checks.map((check) => check({ configuration, families, ask, collect, stuck }))))
  ).flat();
  await output.write(formatReport(results, options.output));
  return { status: results.some(({ status }) => status === 'finding') ? 1 : 0, isStuck };
}

/** Each path is asked once. */
function once(ask: Ask): Ask {
  const asked = new Map<string, Promise<Asked>>();
  return (path) => {
    const answer = asked.get(path) ?? ask(path);
    asked.set(path, answer);
    return answer;
  };
}
