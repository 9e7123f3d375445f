// Each target makes an input, a text, from random choices, and checks what the product does with it. A check throws when it finds a fault.
export const targets = {
  'nvidia-smi': async () => (await import('./targets/nvidia.mjs')).document(),
  'process-names': async () => (await import('./targets/nvidia.mjs')).processNames(),
  listings: async () => (await import('./targets/nvidia.mjs')).listings(),
  'kernel-log': async () => (await import('./targets/nvidia.mjs')).kernelLog(),
  'infiniband-sysfs': async () => (await import('./targets/trees.mjs')).infiniband(),
  'fpga-sysfs': async () => (await import('./targets/trees.mjs')).fpga(),
  checkpoint: async () => (await import('./targets/kubelet.mjs')).checkpoint(),
  list: async () => (await import('./targets/kubelet.mjs')).list(),
  plugin: async () => (await import('./targets/kubelet.mjs')).plugin(),
  configuration: async () => (await import('./targets/agent.mjs')).configuration(),
  state: async () => (await import('./targets/agent.mjs')).state(),
  http: async () => (await import('./targets/agent.mjs')).http(),
  labels: async () => (await import('./targets/agent.mjs')).labels(),
};
