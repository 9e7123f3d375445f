/** Version of a driver. `580.105.08` has branch 580 and build 105. Both are 0 when the version is unknown. */
export interface DriverVersion {
  readonly branch: number;
  readonly build: number;
}

export function driverVersionOf(text: string): DriverVersion {
  const [, branch = '0', build = '0'] = /^(\d+)(?:\.(\d+))?/.exec(text) ?? [];
  return { branch: Number(branch), build: Number(build) };
}
