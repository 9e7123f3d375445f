#!/usr/bin/env node
import { faultOf } from './fault.ts';

try {
  // Loaded from here, so that a loader that fails ends in a sentence too.
  const { start } = await import('./start.ts');
  await start(process.argv.slice(2));
} catch (error) {
  const { text, status } = faultOf(error);
  process.stderr.write(text);
  process.exit(status);
}
