import type { Finding } from '../../model/health.ts';
import { cellAt, type Element } from './document.ts';

/**
 * The widest PCIe link that each GPU was seen with. Boards in the cloud run at a part of their maximum and are sound, so a
 * link is compared with its own past.
 */
export class WidthMemory {
  readonly #widest = new Map<string, number>();

  findings(id: string, gpu: Element): readonly Finding[] {
    const cell = cellAt(gpu, 'pci/pci_gpu_link_info/link_widths/current_link_width');
    if (cell.kind !== 'number' || cell.value <= 0) return [];
    const widest = Math.max(cell.value, this.#widest.get(id) ?? 0);
    this.#widest.set(id, widest);
    const status = cell.value < widest;
    const reason = status ? 'NarrowerThanBefore' : 'AsBefore';
    return [{ type: 'PcieLinkDegraded', status, reason, message: `PCIe link x${cell.value}, was x${widest}` }];
  }
}
