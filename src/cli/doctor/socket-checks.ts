import { stateOptions } from '../../agent/options.ts';
import type { SocketStats } from '../../model/agent-stats.ts';
import { controlSocket } from '../../server/control/control-socket.ts';
import { askAddress } from '../agent-api.ts';
import { type CheckContext, type CheckResult, finding, ok, skipped } from './check.ts';

const NAME = 'sockets';
const REMEDY = 'The agent makes it again within two seconds when the cause is gone. docs/runbooks/agents.md#deviceagentsocketaway';

/** Checks that the sockets of the running agent are in their places, by its own words and by its answer at the configured address. */
export async function checkSockets({ configuration, ask, askProblem }: CheckContext): Promise<CheckResult[]> {
  const { answer } = await ask('/api/v1/status');
  const told = socketsIn(answer?.body);
  if (told !== undefined) {
    const findings = told.flatMap(({ name, path, problem }) =>
      problem === undefined ? [] : [finding(NAME, `${name}: ${path}: ${problem}`, 'Its clients cannot ask the agent.', REMEDY)],
    );
    if (findings.length > 0) return findings;
    return [told.length === 0 ? skipped(NAME, 'the agent has no sockets') : ok(NAME, told.map(({ path }) => path).join(', '))];
  }
  const problem = askProblem();
  if (problem?.code === 'agent-untrusted') return [skipped(NAME, 'they are not asked: see state-file')];
  if (problem !== undefined) return [finding(NAME, problem.message, 'Commands of the node get no answer.', problem.remedy)];
  const { file } = configuration.section('state', stateOptions);
  if (file === '') return [skipped(NAME, 'no agent answers')];
  const { answer: other } = await askAddress(configuration, '/api/v1/status');
  if (other?.agent === undefined) return [skipped(NAME, 'no agent answers')];
  return [
    finding(
      NAME,
      `an agent answers at its address (${other.agent}), and not at ${controlSocket(file)}`,
      'The agent uses another state file, or its socket is not in its place.',
      `Give this command the --state.file of the agent. ${REMEDY}`,
    ),
  ];
}

function socketsIn(body: unknown): readonly SocketStats[] | undefined {
  const { sockets } = (body ?? {}) as { readonly sockets?: unknown };
  return Array.isArray(sockets) ? sockets.filter((one) => typeof one?.path === 'string') : undefined;
}
