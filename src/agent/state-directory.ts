import { dirname, resolve } from 'node:path';
import { whyUntrusted } from '../host/fs/open-path.ts';
import type { AgentSettings } from './settings.ts';

/** Settings without a state file, and the reason, when others than root and the user of this process can change the directory of the file. */
export async function withTrustedState(settings: AgentSettings): Promise<{ readonly settings: AgentSettings; readonly problem?: string }> {
  const { file } = settings.state;
  const problem = file === '' ? undefined : await whyUntrusted(dirname(resolve(file)));
  if (problem === undefined) return { settings };
  return { settings: { ...settings, state: { ...settings.state, file: '' } }, problem };
}
