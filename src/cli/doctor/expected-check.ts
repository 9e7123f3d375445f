import { expectedDevices } from '../../config/structured.ts';
import { areTooFew, type ExpectedDevices, expectedText } from '../../model/expected.ts';
import { expectedIn } from '../api-device.ts';
import { type CheckContext, type CheckResult, finding, ok, skipped } from './check.ts';

/** Compares the number of devices with `expect`: as the running agent counts them, or by one reading. */
export async function checkExpected({ configuration, collect, ask }: CheckContext): Promise<CheckResult[]> {
  const name = 'expected-devices';
  if (Object.keys(configuration.part(expectedDevices)).length === 0)
    return [skipped(name, 'the configuration expects no number of devices')];
  const { answer } = await ask('/api/v1/devices');
  const expected = expectedIn(answer?.body) ?? (await collect()).expected ?? [];
  const findings = expected.flatMap((one) => judge(name, one));
  return findings.length > 0 ? findings : [ok(name, expected.map(({ family, present }) => `${present} ${family}`).join(', '))];
}

function judge(name: string, one: ExpectedDevices): readonly CheckResult[] {
  if (one.present === undefined) {
    const remedy =
      'Read the findings on the probe of the family. Check that the family exists and is turned on, or remove it from `expect`.';
    return [finding(name, expectedText(one), 'The family was not read completely.', remedy)];
  }
  if (!areTooFew(one)) return [];
  const remedy = 'Search `lspci` and the kernel log for the device. Correct `expect` if the node has fewer devices.';
  return [finding(name, expectedText(one), 'A device is gone, has no driver, or was never there.', remedy)];
}
