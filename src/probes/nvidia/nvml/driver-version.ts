/** Of a driver `580.105.08`: branch 580, build 105. Zeros where it does not tell. */
export interface DriverVersion {
  readonly branch: number;
  readonly build: number;
}

export function driverVersionOf(text: string): DriverVersion {
  const [, branch = '0', build = '0'] = /^(\d+)(?:\.(\d+))?/.exec(text) ?? [];
  return { branch: Number(branch), build: Number(build) };
}
