/**
 * Names of the adapters whose driver gives only a code: `MT` and the device id of PCI in decimal digits. Source: the table of ids of
 * Linux drivers/net/ethernet/mellanox/mlx5/core/main.c (mlx5_core_pci_table).
 */
export const PRODUCTS: Readonly<Record<string, string>> = {
  MT4113: 'Connect-IB',
  MT4115: 'ConnectX-4',
  MT4117: 'ConnectX-4 Lx',
  MT4119: 'ConnectX-5',
  MT4121: 'ConnectX-5 Ex',
  MT4123: 'ConnectX-6',
  MT4125: 'ConnectX-6 Dx',
  MT4127: 'ConnectX-6 Lx',
  MT4129: 'ConnectX-7',
  MT4131: 'ConnectX-8',
  MT41682: 'BlueField',
  MT41686: 'BlueField-2',
  MT41692: 'BlueField-3',
};
