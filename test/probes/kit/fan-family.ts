import { isDeepStrictEqual } from 'node:util';
import type { Host } from '../../../src/host/host.ts';
import type { Collection, DeviceReport, Problem } from '../../../src/model/collection.ts';
import { seconds } from '../../../src/model/duration.ts';
import type { ConditionSpec, Finding } from '../../../src/model/health.ts';
import { durationOption, type OptionValues } from '../../../src/model/options.ts';
import { measured, shared } from '../../../src/model/shared-metrics.ts';
import { defineFamily, type Probe } from '../../../src/probes/family.ts';
import { DeviceFiles, type FileFact, fileProblems, unlisted } from '../../../src/probes/kit/device-files.ts';
import { declaredFinding, growthCondition, raiseGrowth } from '../../../src/probes/kit/finding.ts';
import { possible } from '../../../src/probes/kit/hwmon.ts';
import { familyMetrics } from '../../../src/probes/kit/metrics.ts';
import { nodeAccess } from '../../../src/probes/kit/node-access.ts';
import { IntervalCache, type Pace, Pacer, reconciled } from '../../../src/probes/kit/pace.ts';
import { ReadingSet } from '../../../src/probes/kit/reading-set.ts';
import { sensorProblems } from '../../../src/probes/kit/temperature.ts';
import { firstLine, parseCount, parseFlag } from '../../../src/probes/kit/text.ts';

/** A small family through the kit, for hardware that does not exist: fans, one directory each. It takes the place of a family of a build. */
const NAME = 'fpga';
const CLASS = 'class/fan';
const FAN = `/sys/${CLASS}/<fan>`;

const { gauge, counter } = familyMetrics(NAME);
const metrics = {
  temperature: measured(shared.temperature, `${FAN}/millicelsius / 1000`),
  speed: measured(shared.fanSpeed, `${FAN}/rpm`),
  asleep: gauge('asleep', '1 while the fan may stand still, 0 while it must turn.', [], `${FAN}/asleep`),
  stalls: counter('stalls_total', 'Times that the fan did not turn at its start.', [], `${FAN}/stalls`),
};

const conditions = {
  FanStopped: {
    type: 'FanStopped',
    class: 'latched',
    severity: 'fatal',
    reasons: ['NoTurns', 'Turns', 'Unreadable'],
    meaning: 'The fan must turn and does not.',
    remedy: 'replace',
    source: `${FAN}/rpm, ${FAN}/asleep`,
  },
  FanStalls: growthCondition({
    type: 'FanStalls',
    severity: 'degraded',
    meaning: 'The fan needs several attempts to start.',
    remedy: 'replace',
    source: `${FAN}/stalls`,
    growth: 2,
    windowMs: seconds(600),
  }),
} as const satisfies Readonly<Record<string, ConditionSpec>>;

const problems = [
  { code: 'class-unreadable', meaning: 'The list of fans cannot be read.', remedy: 'Let the agent read /sys/class/fan.' },
  ...fileProblems('fan', 'Search the kernel log for fan.'),
  ...sensorProblems,
];

const options = { 'facts-interval': durationOption(seconds(60), 'Time between two reads of the serial numbers', seconds(1)) };

interface Place {
  readonly name: string;
  readonly identity: string | undefined;
}

class Fan {
  readonly place: Place;
  readonly #host: Host;
  readonly #everyMs: number;
  readonly #serial = new IntervalCache<{ readonly text: string | undefined; readonly problems: readonly Problem[] }>();

  constructor(host: Host, everyMs: number, place: Place) {
    this.#host = host;
    this.#everyMs = everyMs;
    this.place = place;
  }

  close(): void {
    this.#host.sys.forget(`${CLASS}/${this.place.name}`);
  }

  read(pace: Pace): { readonly report: DeviceReport; readonly problems: readonly Problem[] } {
    const { name } = this.place;
    const files = new DeviceFiles(this.#host.sys, `${CLASS}/${name}`, { device: name });
    const serial = this.#serial.of(pace, this.#everyMs, () => {
      const apart = files.apart();
      return { text: apart.value('serial', firstLine), problems: apart.problems };
    });
    const count = (file: string): number | undefined => {
      const { value } = files.live(file, parseCount);
      return value === undefined ? undefined : Number(value);
    };
    const millicelsius = count('millicelsius');
    const [rpm, stalls, isAsleep] = [files.live('rpm', parseCount), count('stalls'), files.live('asleep', parseFlag).value];
    const readings = new ReadingSet();
    readings.add(metrics.temperature, possible(files, 'millicelsius', 'temp', millicelsius && millicelsius / 1_000), { sensor: 'hub' });
    readings.add(metrics.speed, rpm.value, { fan: name });
    readings.add(metrics.asleep, isAsleep === undefined ? undefined : Number(isAsleep));
    readings.add(metrics.stalls, stalls);
    const findings = [...stopped(rpm, isAsleep), ...raiseGrowth(conditions.FanStalls, stalls, `${stalls} stalls`)];
    const identity = serial.text === undefined ? null : `fan ${serial.text}`;
    const device = { family: NAME, id: name, identity, kind: 'fpga', aliases: [], characterDevices: [`/dev/${name}`] };
    const report = { device, ...(!files.isHung && { read: { readings: readings.list(), findings } }) };
    return { report, problems: [...files.problems, ...serial.problems] };
  }
}

function stopped(rpm: FileFact<number | bigint>, isAsleep: boolean | undefined): Finding[] {
  if (rpm.isUnknown)
    return [declaredFinding(conditions.FanStopped, 'Unreadable', { status: 'unknown', message: 'the speed cannot be read' })];
  if (rpm.value === undefined || isAsleep === undefined) return [];
  const status = rpm.value === 0 && !isAsleep;
  return [declaredFinding(conditions.FanStopped, status ? 'NoTurns' : 'Turns', { status, message: `${rpm.value} turns a minute` })];
}

class FanProbe implements Probe {
  readonly #host: Host;
  readonly #everyMs: number;
  readonly #pacer = new Pacer();
  #fans = new Map<string, Fan>();

  constructor(host: Host, values: OptionValues<typeof options>) {
    this.#host = host;
    this.#everyMs = values['facts-interval'];
  }

  collect(): Collection {
    const { sys, clock } = this.#host;
    const { names, error } = sys.listing(CLASS);
    if (names === undefined) {
      this.forget();
      return unlisted(CLASS, error);
    }
    const places = names.map((name): Place => ({ name, identity: sys.identity(`${CLASS}/${name}`) }));
    const make = (place: Place): Fan => new Fan(this.#host, this.#everyMs, place);
    this.#fans = reconciled(
      this.#fans,
      places,
      ({ name }) => name,
      make,
      (fan, place) => isDeepStrictEqual(fan.place, place),
    );
    const pace = this.#pacer.next(clock.monotonic());
    const reads = [...this.#fans.values()].map((fan) => fan.read(pace));
    return { reports: reads.map(({ report }) => report), problems: reads.flatMap((each) => each.problems), listing: 'complete' };
  }

  forget(): void {
    for (const fan of this.#fans.values()) fan.close();
    this.#fans.clear();
  }

  close(): void {
    this.forget();
  }
}

export const family = defineFamily({
  name: NAME,
  summary: 'Fans of a test',
  kinds: ['fpga'],
  metrics: Object.values(metrics),
  conditions: Object.values(conditions),
  problems,
  isPresent: ({ sys }) => sys.listing(CLASS).error !== 'ENOENT',
  options,
  createProbe: (host, values) => new FanProbe(host, values),
  access: (device) => nodeAccess(device),
});
