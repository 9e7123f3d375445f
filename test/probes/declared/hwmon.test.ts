import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { checkDeclaration } from '../../../src/config/families/family-file.ts';
import { buildMachine } from '../../support/machine.ts';
import { declaredFamily, HandClock, probeOn } from './support.ts';

const DECLARATION = `
family: acme
summary: Acme
devices:
  - { kind: card, find: { sysfs: 'class/acme/acme#' }, id: '{name}' }
hwmon: true
`;

it('reads the sensors of the monitors below a device by their labels, and judges their limits', async () => {
  const monitor = 'sys/class/acme/acme0/device/hwmon/hwmon3';
  const files = {
    temp1_label: 'Core',
    temp1_input: '61000',
    temp1_crit: '95000',
    // No part is critical at 10 °C.
    temp2_input: '40000',
    temp2_crit: '10000',
    power1_average: '7000000',
    fan1_input: '1200',
  };
  const machine = buildMachine({
    about: 'a card with a hardware monitor',
    files: Object.fromEntries(Object.entries(files).map(([name, text]) => [`${monitor}/${name}`, `${text}\n`])),
  });
  onTestFinished(() => machine.remove());
  const family = await declaredFamily(DECLARATION);
  expect(family.conditions.map(({ type }) => type)).toEqual(['OverTemperature']);
  const clock = new HandClock();
  const probe = probeOn(family, machine.root, clock);
  const look = async () => {
    const { reports, problems } = await probe.collect();
    clock.nowMs += 10_000;
    const { readings = [], findings = [] } = reports[0]?.read ?? {};
    return {
      values: [...readings].map(({ metric, labels, value }) => `${metric} ${Object.values(labels ?? {}).join(' ')} ${value}`),
      findings: findings.map(({ reason, instance, status }) => [reason, instance, status]),
      problems: problems.map(({ code }) => code),
    };
  };
  expect(await look()).toEqual({
    values: [
      'device_temperature_celsius core 61',
      'device_temperature_celsius temp2 40',
      'device_power_watts power1_average 7',
      'device_fan_speed_rpm fan1 1200',
      'device_temperature_limit_celsius core crit 95',
      'device_temperature_limit_celsius temp2 crit 10',
    ],
    findings: [['BelowLimit', 'core', false]],
    problems: ['value-invalid'],
  });
  writeFileSync(join(machine.root, `${monitor}/temp1_input`), '96000\n');
  expect((await look()).findings).toEqual([['AtCritical', 'core', true]]);
  writeFileSync(join(machine.root, `${monitor}/temp1_input`), 'hot\n');
  expect((await look()).findings).toEqual([['Unreadable', 'core', 'unknown']]);
});

it('leaves no reading of the same metric to the declaration', async () => {
  const { problems } = await checkDeclaration(
    `${DECLARATION}readings:\n  - { metric: device_temperature_celsius, file: temp, labels: { sensor: core } }\n`,
  );
  expect(problems?.map(({ message }) => message)).toEqual(['"hwmon: true" already reads device_temperature_celsius']);
});
