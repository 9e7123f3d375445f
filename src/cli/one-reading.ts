import { REFUSAL_TEXTS, type Refusal } from './agent-api.ts';
import type { CommandContext } from './context.ts';
import { agentSettings } from './settings.ts';
import { readVersion } from './version.ts';

/** Says why the agent that listens did not answer. */
export function warnOfRefusal({ logger }: Pick<CommandContext, 'logger'>, refusal: Refusal | undefined): void {
  if (refusal !== undefined) logger.warn('the running agent cannot be asked; this is one reading', REFUSAL_TEXTS[refusal]);
}

/** Reads the hardware once, for a command that no agent answers. */
export async function readOnce(context: CommandContext, refusal: Refusal | undefined) {
  warnOfRefusal(context, refusal);
  const { configuration, families, logger } = context;
  const { collectOnce } = await import('../agent/agent.ts');
  return await collectOnce(agentSettings(configuration, families), { logger, version: readVersion().version });
}
