import { declarationSchema } from '../../probes/declared/declaration.ts';
import type { DeviceFamily } from '../../probes/family.ts';
import type { CommandContext, Ending } from '../context.ts';
import { textTable } from '../text-table.ts';

/** Prints all families, and whether the configuration enables them. */
export async function listFamilies({ families, configuration, output, options }: CommandContext): Promise<Ending> {
  const rows = families.map((family) => ({
    family: family.name,
    form: formOf(family),
    enabled: configuration.isOn(`probe.${family.name}`),
    summary: family.summary,
    ...(family.proven === undefined ? {} : { proven: family.proven }),
  }));
  if (options.output === 'json') await output.write(`${JSON.stringify({ families: rows }, null, 2)}\n`);
  else {
    const lines = rows.map(({ family, form, enabled, summary }) => [family, form, enabled ? 'yes' : 'no', summary]);
    await output.write(textTable([['FAMILY', 'FORM', 'ENABLED', 'HARDWARE'], ...lines]));
  }
  return { status: 0 };
}

const formOf = ({ declared }: DeviceFamily): string => (declared === undefined ? 'code' : 'declared');

export async function printFamilySchema({ output }: CommandContext): Promise<Ending> {
  await output.write(`${JSON.stringify(declarationSchema, null, 2)}\n`);
  return { status: 0 };
}
