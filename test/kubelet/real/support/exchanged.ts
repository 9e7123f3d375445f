export interface WantedContainer {
  readonly name: string;
  readonly kind?: 'app' | 'init' | 'sidecar';
  /** How many of which resource. */
  readonly wants?: Readonly<Record<string, number>>;
  readonly cpus?: readonly number[];
  readonly memory?: readonly { readonly type: string; readonly bytes: number; readonly nodes: readonly number[] }[];
  readonly claims?: readonly {
    readonly namespace: string;
    readonly name: string;
    readonly devices: readonly { readonly driver: string; readonly pool: string; readonly device: string; readonly share?: string }[];
  }[];
}

export interface WantedPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid?: string;
  readonly containers: readonly WantedContainer[];
}

/** What the kubelet would pass on to the container runtime. */
export interface RunOptions {
  readonly env: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly mounts: readonly { readonly containerPath: string; readonly hostPath: string; readonly readOnly: boolean }[];
  readonly nodes: readonly { readonly containerPath: string; readonly hostPath: string; readonly permissions: string }[];
  readonly cdi: readonly string[];
}

export interface Given {
  readonly devices: Readonly<Record<string, readonly string[]>>;
  readonly options?: RunOptions;
  readonly error?: string;
}

export interface Refused {
  readonly pod: string;
  readonly reason: string;
  readonly message: string;
}

export interface Admission {
  readonly uid: string;
  readonly refused?: Refused;
  readonly given?: Readonly<Record<string, Given>>;
}

export interface ToldCapacity {
  readonly capacity: Readonly<Record<string, number>>;
  readonly allocatable: Readonly<Record<string, number>>;
  readonly gone: readonly string[];
}

/** An answer of PodResources in the proto's own JSON: 64 bit numbers are texts, defaults are left out. */
export interface ToldDevices {
  readonly resource_name: string;
  readonly device_ids: readonly string[];
  readonly topology?: { readonly nodes?: readonly { readonly ID?: string }[] };
}
export interface ToldContainer {
  readonly name: string;
  readonly devices?: readonly ToldDevices[];
  readonly cpu_ids?: readonly string[];
  readonly memory?: readonly object[];
  readonly dynamic_resources?: readonly object[];
}
export interface ToldPod {
  readonly name: string;
  readonly namespace: string;
  readonly containers?: readonly ToldContainer[];
}

/** What a plugin told of its devices in one message of `ListAndWatch`. */
export interface ToldList {
  /** When the device manager had taken it. */
  readonly atMs: number;
  readonly resource: string;
  /** Health by device id, in the plugin's words. */
  readonly devices: Readonly<Record<string, string>>;
}

export interface StartSettings {
  /** How long after its start the kubelet learns of the pods. Default 0; `Infinity`: at `deliver`. */
  readonly podsAfterMs?: number;
}
