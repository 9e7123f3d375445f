// Written by `npm run generate` from families/neuron.yaml. Not edited by hand.
export const declaration: object = {
  "family": "neuron",
  "summary": "AWS Inferentia and Trainium accelerators (Neuron)",
  "proven": "The cells of neuron-ls -j were checked against the output that the Neuron manual prints for a trn2n.48xlarge. The sysfs files follow the sources and the manual of the driver; no capture of a real tree was available.",
  "commands": {
    "ls": {
      "path": "/opt/aws/neuron/bin/neuron-ls",
      "args": [
        "-j"
      ],
      "format": "json",
      "key": "/neuron_device",
      "every": "1m",
      "timeout": "5s",
      "optional": true
    }
  },
  "devices": [
    {
      "kind": "device",
      "find": {
        "sysfs": "devices/virtual/neuron_device/neuron#"
      },
      "rows": {
        "ls": "{1}"
      },
      "id": "{name}",
      "aliases": [
        {
          "command": "ls",
          "pointer": "/neuroncore_ids",
          "as": "core{value}"
        }
      ],
      "facts": {
        "index": "{1}",
        "minor": "{1}",
        "vendor": "Amazon",
        "model": {
          "file": "info/architecture/device_name"
        },
        "serial": {
          "file": "info/serial_number"
        },
        "pciAddress": {
          "command": "ls",
          "pointer": "/bdf"
        },
        "numaNode": {
          "command": "ls",
          "pointer": "/numa_node"
        }
      },
      "nodes": [
        "/dev/neuron{minor}"
      ]
    }
  ],
  "bus": [
    {
      "kind": "device",
      "vendor": "0x1d0f",
      "devices": [
        "0x7064",
        "0x7065",
        "0x7066",
        "0x7067",
        "0x7164",
        "0x7264",
        "0x7364"
      ],
      "drivers": [
        "neuron-driver"
      ],
      "nodes": 1
    }
  ],
  "pcie": true,
  "readings": [
    {
      "metric": "device_memory_total_bytes",
      "command": "ls",
      "pointer": "/memory_size"
    },
    {
      "metric": "device_neuron_cores",
      "help": "Logical cores of the device.",
      "command": "ls",
      "pointer": "/nc_count"
    },
    {
      "metric": "device_neuron_memory_used_bytes",
      "help": "Memory of the device in use, by core and kind of data.",
      "container": true,
      "file": "neuron_core#/stats/memory_usage/device_mem/*/total",
      "labels": {
        "core": "{1}",
        "data": "{2}"
      }
    },
    {
      "metric": "device_neuron_executions_total",
      "type": "counter",
      "help": "Executions that ended, by core and result.",
      "container": true,
      "file": "neuron_core#/stats/status/*/total",
      "labels": {
        "core": "{1}",
        "result": "{2}"
      }
    },
    {
      "metric": "device_neuron_power_ratio",
      "help": "Average power in the last minute as a share of the maximum.",
      "file": "stats/power/utilization",
      "line": "POWER_STATUS_VALID,",
      "separator": ",",
      "field": 4,
      "scale": 0.01
    },
    {
      "metric": "device_errors_total",
      "file": "stats/hardware/mem_ecc_uncorrected",
      "labels": {
        "kind": "hbm_uncorrectable"
      }
    },
    {
      "metric": "device_errors_total",
      "file": "stats/hardware/mem_ecc_repairable_uncorrected",
      "labels": {
        "kind": "hbm_repairable"
      }
    },
    {
      "metric": "device_errors_total",
      "file": "stats/hardware/sram_ecc_uncorrected",
      "labels": {
        "kind": "sram_uncorrectable"
      }
    }
  ],
  "conditions": [
    {
      "type": "HbmUncorrectable",
      "severity": "fatal",
      "latched": true,
      "meaning": "The memory of the device had errors that it could not correct.",
      "remedy": "replace",
      "source": "AWS Neuron driver: stats/hardware/mem_ecc_uncorrected; HBM_UNCORRECTABLE_ERROR of the vendor's problem detector",
      "file": "stats/hardware/mem_ecc_uncorrected",
      "above": 0,
      "absent": [
        0
      ]
    },
    {
      "type": "HbmRepairable",
      "severity": "degraded",
      "latched": true,
      "meaning": "The memory of the device had errors that a reboot of the node repairs.",
      "remedy": "reboot",
      "source": "AWS Neuron driver: stats/hardware/mem_ecc_repairable_uncorrected",
      "file": "stats/hardware/mem_ecc_repairable_uncorrected",
      "above": 0,
      "absent": [
        0
      ]
    },
    {
      "type": "SramUncorrectable",
      "severity": "fatal",
      "latched": true,
      "meaning": "The on-chip memory of the device had errors that it could not correct.",
      "remedy": "replace",
      "source": "AWS Neuron driver: stats/hardware/sram_ecc_uncorrected; SRAM_UNCORRECTABLE_ERROR of the vendor's problem detector",
      "file": "stats/hardware/sram_ecc_uncorrected",
      "above": 0,
      "absent": [
        0
      ]
    },
    {
      "type": "CoreHardwareError",
      "severity": "fatal",
      "meaning": "Executions of a core ended with an error of the hardware.",
      "remedy": "replace",
      "source": "AWS Neuron driver: stats/status/hw_*_error and hw_error; NC_UNCORRECTABLE_ERROR and DMA_ERROR of the vendor's problem detector",
      "file": "neuron_core#/stats/status/hw_*/total",
      "instance": "core{1}-{2}",
      "growth": {
        "above": 0,
        "within": "24h"
      },
      "recovery": "24h"
    },
    {
      "type": "ResetFailed",
      "severity": "fatal",
      "meaning": "The driver could not reset the device.",
      "remedy": "reboot",
      "source": "AWS Neuron driver: stats/other_info/reset_fail_count",
      "file": "neuron_core#/stats/other_info/reset_fail_count/total",
      "growth": {
        "above": 0,
        "within": "24h"
      },
      "recovery": "1h"
    }
  ],
  "lines": [
    {
      "event": "sram-reported",
      "drivers": [
        "neuron"
      ],
      "text": "NEURON_HW_ERR=SRAM_UNCORRECTABLE_ERROR*nd-id={nd} nc-id={nc}",
      "device": {
        "class": "neuron_device",
        "name": "neuron{nd}"
      },
      "means": "the Neuron runtime of a program reported uncorrectable errors of on-chip memory (core {nc})",
      "source": "AWS Neuron manual, troubleshooting of the runtime; printed for a program by ncdev_printk in neuron_cdev.c of the driver",
      "fault": {
        "type": "SramReported",
        "severity": "info",
        "remedy": "inspect"
      }
    },
    {
      "event": "core-reported",
      "drivers": [
        "neuron"
      ],
      "text": "NEURON_HW_ERR=NC_UNCORRECTABLE_ERROR*nd-id={nd} nc-id={nc}",
      "device": {
        "class": "neuron_device",
        "name": "neuron{nd}"
      },
      "means": "the Neuron runtime of a program reported an uncorrectable error of a core (core {nc})",
      "source": "AWS Neuron manual, troubleshooting of the runtime; printed for a program by ncdev_printk in neuron_cdev.c of the driver",
      "fault": {
        "type": "CoreReported",
        "severity": "info",
        "remedy": "inspect"
      }
    },
    {
      "event": "hbm-reported",
      "drivers": [
        "neuron"
      ],
      "text": "NEURON_HW_ERR=HBM_UNCORRECTABLE_ERROR*nd-id={nd} nc-id={nc}",
      "device": {
        "class": "neuron_device",
        "name": "neuron{nd}"
      },
      "means": "the Neuron runtime of a program reported uncorrectable errors of memory (core {nc})",
      "source": "AWS Neuron manual, troubleshooting of the runtime; printed for a program by ncdev_printk in neuron_cdev.c of the driver",
      "fault": {
        "type": "HbmReported",
        "severity": "info",
        "remedy": "inspect"
      }
    },
    {
      "event": "dma-reported",
      "drivers": [
        "neuron"
      ],
      "text": "NEURON_HW_ERR=DMA_ERROR *nd-id={nd} nc-id={nc}",
      "device": {
        "class": "neuron_device",
        "name": "neuron{nd}"
      },
      "means": "the Neuron runtime of a program reported an error of a DMA engine (core {nc})",
      "source": "AWS Neuron manual, troubleshooting of the runtime; printed for a program by ncdev_printk in neuron_cdev.c of the driver",
      "fault": {
        "type": "DmaReported",
        "severity": "info",
        "remedy": "inspect"
      }
    },
    {
      "event": "device-invalid",
      "drivers": [
        "neuron"
      ],
      "text": "neuron:ncdev_open: nd{nd} is in an invalid state",
      "device": {
        "class": "neuron_device",
        "name": "neuron{nd}"
      },
      "means": "a program could not open the device, because its reset failed",
      "source": "AWS Neuron driver, neuron_cdev.c, ncdev_open",
      "fault": {
        "type": "DeviceInvalid",
        "severity": "info",
        "remedy": "inspect"
      }
    }
  ],
  "resources": [
    {
      "resource": "aws.amazon.com/neuron",
      "ids": [
        "{index}"
      ]
    },
    {
      "resource": "aws.amazon.com/neurondevice",
      "ids": [
        "{index}"
      ]
    },
    {
      "resource": "aws.amazon.com/neuroncore",
      "alias": "core{id}"
    }
  ]
};
