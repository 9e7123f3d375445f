import { accessSync, constants, statSync } from 'node:fs';
import { join } from 'node:path';
import { pluginResources } from '../../config/structured.ts';
import { socketAt } from '../../host/fs/socket-file.ts';
import { errnoName } from '../../host/fs/tree.ts';
import { pluginOptions } from '../../plugin/options.ts';
import { type CheckContext, type CheckResult, finding, ok, skipped } from './check.ts';

const LOSS = 'The configured resources cannot be offered to the kubelet.';

/** Checks that the plugin can create sockets where the kubelet looks for them, and that the kubelet's own socket exists. */
export function checkPlugin({ configuration }: CheckContext): CheckResult[] {
  const name = 'plugin-directory';
  const count = configuration.part(pluginResources).length;
  if (count === 0) return [skipped(name, 'no resource is configured below plugin.resources')];
  const options = configuration.section('plugin', pluginOptions);
  const [option, path] = options.registration === 'watcher' ? ['registry-dir', options['registry-dir']] : ['dir', options.dir];
  const trouble = whyUnusable(path);
  if (trouble !== undefined) {
    return [finding(name, `${path} ${trouble}`, LOSS, `Mount the host's directory without readOnly, or set --plugin.${option}.`)];
  }
  const socket = join(path, 'kubelet.sock');
  if (option === 'dir' && socketAt(socket).kind !== 'socket') {
    return [finding(name, `${socket} does not exist`, LOSS, 'Check the kubelet: systemctl status kubelet. Or set --plugin.dir.')];
  }
  return [ok(name, `${path}, for ${count} ${count === 1 ? 'resource' : 'resources'}`)];
}

/** Also detects a read-only mount, where even root cannot write. */
function whyUnusable(path: string): string | undefined {
  try {
    if (!statSync(path).isDirectory()) return 'is not a directory';
    accessSync(path, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    return `cannot be written to (${errnoName(error)})`;
  }
}
