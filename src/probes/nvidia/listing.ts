import type { ListedHardware } from '../../model/declaration.ts';

/** What each GPU is that the machine has and the driver does not show. */
export const listing: readonly ListedHardware[] = [
  { what: 'a GPU to which the driver is bound', is: 'listed, unhealthy by NotInitialized, at the first look' },
  {
    what: 'a GPU that a line of nvidia-smi or a code of NVML names',
    is: 'listed, unhealthy by GpuLost, or by NotInitialized if the driver never started it',
  },
  { what: 'a GPU without a driver, while the driver has another GPU of the same model', is: 'listed, unhealthy by NotInitialized' },
  {
    what: 'a GPU without a UUID',
    is: 'listed by its PCI address. Its conditions, holders and accounts go to the UUID when the driver tells it',
  },
  { what: 'a GPU whose driver is not loaded or has another version than its library', is: 'listed, unhealthy by DriverUnusable' },
  { what: 'a GPU whose driver does not answer, or which the agent may not open', is: 'listed, unknown' },
  { what: 'a GPU that NVIDIA_VISIBLE_DEVICES of the agent leaves out', is: 'listed, unknown; problem no-permission' },
  { what: 'a GPU that an administrator drains (nvidia-smi drain)', is: 'listed, unknown; problem gpu-drained' },
  { what: 'a GPU that was released to a program or a person', is: 'listed, unknown by DriverReleased' },
  { what: 'a GPU of a virtual machine (vfio-pci, nvgrace_gpu_vfio_pci)', is: 'not listed' },
  { what: 'a GPU with another driver, or for which an administrator chose another one (driver_override)', is: 'not listed' },
  { what: 'a virtual function of a vGPU', is: 'not listed' },
  { what: 'a function of another class than VGA and 3D controller, such as the audio function of a board', is: 'not listed' },
  { what: 'a GPU that the driver was told to exclude', is: 'not listed' },
  { what: 'a GPU without a driver, of a model of which the driver has none', is: 'not listed' },
  { what: 'a GPU of a node that has neither the driver nor its programs yet', is: 'not listed; problem smi-not-found' },
];
