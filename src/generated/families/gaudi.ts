// Written by `npm run generate` from families/gaudi.yaml. Not edited by hand.
export const declaration: object = {
  "family": "gaudi",
  "summary": "Intel Gaudi accelerators",
  "proven": "The values of hl-smi were checked against two printed lines of Gaudi 3 cards from the tests of another project; the column bus_id is not among them. The sysfs files follow the kernel's documentation. The ids of the Kubernetes plugin are not known for certain.",
  "commands": {
    "smi": {
      "path": "/usr/bin/hl-smi",
      "args": [
        "-Q",
        "bus_id,uuid,name,driver_version,memory.total,memory.used,power.draw,power.max,temperature.aip,utilization.aip",
        "--format",
        "csv,noheader"
      ],
      "format": "csv",
      "columns": [
        "bus_id",
        "uuid",
        "name",
        "driver_version",
        "memory.total",
        "memory.used",
        "power.draw",
        "power.max",
        "temperature.aip",
        "utilization.aip"
      ],
      "key": "bus_id",
      "timeout": "5s",
      "optional": true
    }
  },
  "devices": [
    {
      "kind": "card",
      "find": {
        "pci": {
          "vendor": "0x1da3",
          "drivers": [
            "habanalabs"
          ]
        }
      },
      "rows": {
        "smi": "{pci}"
      },
      "id": "{pci}",
      "aliases": [
        {
          "command": "smi",
          "column": "uuid"
        },
        "accel{minor}"
      ],
      "facts": {
        "vendor": "Intel",
        "minor": {
          "entry": "accel/accel#"
        },
        "model": {
          "command": "smi",
          "column": "name"
        },
        "uuid": {
          "command": "smi",
          "column": "uuid"
        },
        "firmware": {
          "file": "cpucp_ver"
        }
      },
      "nodes": [
        "/dev/accel/accel{minor}",
        "/dev/accel/accel_controlD{minor}"
      ]
    }
  ],
  "bus": [
    {
      "kind": "card",
      "vendor": "0x1da3",
      "class": "12",
      "drivers": [
        "habanalabs"
      ],
      "nodes": 2
    }
  ],
  "pcie": true,
  "readings": [
    {
      "metric": "device_memory_total_bytes",
      "command": "smi",
      "column": "memory.total",
      "unit": "MiB",
      "scale": 1048576,
      "absent": [
        "N/A"
      ]
    },
    {
      "metric": "device_memory_used_bytes",
      "command": "smi",
      "column": "memory.used",
      "unit": "MiB",
      "scale": 1048576,
      "absent": [
        "N/A"
      ]
    },
    {
      "metric": "device_power_watts",
      "command": "smi",
      "column": "power.draw",
      "unit": "W",
      "labels": {
        "sensor": "card"
      },
      "absent": [
        "N/A"
      ]
    },
    {
      "metric": "device_power_limit_watts",
      "command": "smi",
      "column": "power.max",
      "unit": "W",
      "labels": {
        "limit": "max"
      },
      "absent": [
        "N/A"
      ]
    },
    {
      "metric": "device_temperature_celsius",
      "command": "smi",
      "column": "temperature.aip",
      "unit": "C",
      "labels": {
        "sensor": "aip"
      },
      "absent": [
        "N/A"
      ]
    },
    {
      "metric": "device_utilization_ratio",
      "command": "smi",
      "column": "utilization.aip",
      "unit": "%",
      "scale": 0.01,
      "labels": {
        "engine": "aip"
      },
      "absent": [
        "N/A"
      ]
    },
    {
      "metric": "device_gaudi_hard_resets_total",
      "type": "counter",
      "help": "Hard resets of the card since the driver was loaded.",
      "file": "hard_reset_cnt"
    }
  ],
  "conditions": [
    {
      "type": "CardDisabled",
      "severity": "fatal",
      "latched": true,
      "meaning": "The driver disabled the card after an error.",
      "remedy": "reboot",
      "source": "Linux Documentation/ABI/testing/sysfs-driver-habanalabs: status Disabled or Malfunction",
      "file": "status",
      "map": {
        "Operational": "operational",
        "Disabled": "disabled",
        "Malfunction": "disabled",
        "Needs reset": "needs reset",
        "In reset": "resetting",
        "In device creation": "resetting",
        "In reset after device release": "resetting"
      },
      "equals": [
        "disabled"
      ]
    },
    {
      "type": "NeedsReset",
      "severity": "fatal",
      "latched": true,
      "meaning": "The card works again only after a reset by the operator.",
      "remedy": "reset",
      "source": "Linux Documentation/ABI/testing/sysfs-driver-habanalabs: status Needs reset",
      "file": "status",
      "map": {
        "Operational": "operational",
        "Disabled": "disabled",
        "Malfunction": "disabled",
        "Needs reset": "needs reset",
        "In reset": "resetting",
        "In device creation": "resetting",
        "In reset after device release": "resetting"
      },
      "equals": [
        "needs reset"
      ]
    },
    {
      "type": "Resetting",
      "severity": "fatal",
      "progress": true,
      "for": "2m",
      "meaning": "The card is in reset or in creation, for longer than that takes.",
      "remedy": "reboot",
      "source": "Linux Documentation/ABI/testing/sysfs-driver-habanalabs: status In reset, In device creation, In reset after device release",
      "file": "status",
      "map": {
        "Operational": "operational",
        "Disabled": "disabled",
        "Malfunction": "disabled",
        "Needs reset": "needs reset",
        "In reset": "resetting",
        "In device creation": "resetting",
        "In reset after device release": "resetting"
      },
      "equals": [
        "resetting"
      ]
    },
    {
      "type": "ResetHappened",
      "severity": "degraded",
      "meaning": "The driver reset the card, which ended the work on it.",
      "remedy": "inspect",
      "source": "Linux Documentation/ABI/testing/sysfs-driver-habanalabs: hard_reset_cnt",
      "reading": "device_gaudi_hard_resets_total",
      "growth": {
        "above": 0,
        "within": "1h"
      },
      "recovery": "10m"
    },
    {
      "type": "ResetFailed",
      "severity": "fatal",
      "meaning": "The driver could not reset the card, so it cannot be used.",
      "remedy": "reboot",
      "source": "kernel log: Linux drivers/accel/habanalabs/common/device.c, hl_device_reset \"Device is NOT usable\"; ends with a reset that worked",
      "log": {}
    }
  ],
  "lines": [
    {
      "event": "start-failed",
      "drivers": [
        "habanalabs",
        "accel"
      ],
      "text": "Failed to initialize *. Device is NOT usable*",
      "means": "the driver could not start the card",
      "source": "Linux drivers/accel/habanalabs/common/device.c, hl_device_init",
      "condition": "StartFailed"
    },
    {
      "event": "init-failed",
      "drivers": [
        "habanalabs"
      ],
      "text": "Fatal error during habanalabs device init",
      "means": "the driver could not start the card",
      "source": "Linux drivers/accel/habanalabs/common/habanalabs_drv.c, hl_pci_probe",
      "condition": "StartFailed"
    },
    {
      "event": "boot-error",
      "drivers": [
        "habanalabs",
        "accel"
      ],
      "text": "*Device boot error - ",
      "means": "the firmware of the card reports an error of its start",
      "source": "Linux drivers/accel/habanalabs/common/firmware_if.c, fw_report_boot_dev0",
      "fault": {
        "type": "BootError",
        "severity": "info",
        "remedy": "inspect"
      }
    },
    {
      "event": "uncorrectable-memory",
      "drivers": [
        "habanalabs",
        "accel"
      ],
      "text": "*Received H/W interrupt # [\"*DERR",
      "means": "the card found an error of its memory that it could not correct, and the driver resets it",
      "source": "Linux drivers/accel/habanalabs/gaudi/gaudi.c, gaudi_print_irq_info; names in gaudi_async_ids_map_extended.h",
      "fault": {
        "type": "UncorrectableMemory",
        "severity": "degraded",
        "remedy": "restart-workload"
      }
    },
    {
      "event": "critical-memory",
      "drivers": [
        "habanalabs",
        "accel"
      ],
      "text": "*: ECC error detected. address: * critical 1.",
      "means": "the card found an error of its memory that it could not correct, and the driver resets it",
      "source": "Linux drivers/accel/habanalabs/gaudi2/gaudi2.c, gaudi2_handle_ecc_event",
      "fault": {
        "type": "UncorrectableMemory",
        "severity": "degraded",
        "remedy": "restart-workload"
      }
    },
    {
      "event": "bus-lost",
      "drivers": [
        "habanalabs",
        "accel"
      ],
      "text": "*PCI failure state error detected",
      "means": "the link to the card is lost for good",
      "source": "Linux drivers/accel/habanalabs/common/habanalabs_drv.c, hl_pci_err_detected",
      "fault": {
        "type": "BusLost",
        "severity": "fatal",
        "remedy": "reboot"
      }
    },
    {
      "event": "board-shutdown",
      "drivers": [
        "habanalabs",
        "accel"
      ],
      "text": "*CPLD shutdown event, reset reason: ",
      "means": "the board switched the card off to protect it",
      "source": "Linux drivers/accel/habanalabs/gaudi2/gaudi2.c, gaudi2_handle_eqe",
      "fault": {
        "type": "BoardShutdown",
        "severity": "degraded",
        "remedy": "inspect"
      }
    },
    {
      "event": "firmware-silent",
      "drivers": [
        "habanalabs",
        "accel"
      ],
      "text": "*Failed to communicate with Device CPU*",
      "means": "the firmware of the card did not answer the driver in time",
      "source": "Linux drivers/accel/habanalabs/gaudi/gaudi.c, gaudi_init_cpu_queues; gaudi2.c and goya.c have the same",
      "fault": {
        "type": "FirmwareSilent",
        "severity": "degraded",
        "remedy": "restart-workload"
      }
    },
    {
      "event": "command-timeout",
      "drivers": [
        "habanalabs",
        "accel"
      ],
      "text": "*Device CPU packet timeout (status = ",
      "means": "the firmware of the card did not answer a command of the driver",
      "source": "Linux drivers/accel/habanalabs/common/firmware_if.c, hl_fw_send_cpu_message",
      "fault": {
        "type": "FirmwareSilent",
        "severity": "degraded",
        "remedy": "restart-workload"
      }
    },
    {
      "event": "hardware-not-started",
      "drivers": [
        "habanalabs",
        "accel"
      ],
      "text": "*ailed to initialize the H/W*",
      "means": "the driver could not start the hardware of the card; the line after it says whether the card can be used",
      "source": "Linux drivers/accel/habanalabs/common/device.c, hl_device_init and hl_device_reset",
      "fault": {
        "type": "HardwareNotStarted",
        "severity": "info",
        "remedy": "inspect"
      }
    },
    {
      "event": "heartbeat-lost",
      "drivers": [
        "habanalabs",
        "accel"
      ],
      "text": "*heartbeat failed*",
      "means": "the firmware of the card does not answer the driver, which resets the card",
      "source": "Linux drivers/accel/habanalabs/common/device.c, hl_device_heartbeat",
      "fault": {
        "type": "HeartbeatLost",
        "severity": "degraded",
        "remedy": "restart-workload"
      }
    },
    {
      "event": "reset-begin",
      "drivers": [
        "habanalabs",
        "accel"
      ],
      "text": "*Going to*reset*device",
      "means": "the driver resets the card, which ends the work on it",
      "source": "Linux drivers/accel/habanalabs/common/device.c, hl_device_reset",
      "fault": {
        "type": "CardReset",
        "severity": "degraded",
        "remedy": "restart-workload"
      }
    },
    {
      "event": "reset-done",
      "drivers": [
        "habanalabs",
        "accel"
      ],
      "text": "*Successfully finished resetting the*device",
      "means": "the driver reset the card",
      "source": "Linux drivers/accel/habanalabs/common/device.c, hl_device_reset",
      "ends": [
        "ResetFailed"
      ]
    },
    {
      "event": "started",
      "drivers": [
        "habanalabs",
        "accel"
      ],
      "text": "*Successfully added device*to habanalabs driver",
      "means": "the driver started the card",
      "source": "Linux drivers/accel/habanalabs/common/device.c, hl_device_init",
      "ends": [
        "StartFailed",
        "ResetFailed"
      ]
    },
    {
      "event": "reset-failed",
      "drivers": [
        "habanalabs",
        "accel"
      ],
      "text": "*Failed to reset! Device is NOT usable",
      "means": "the driver could not reset the card",
      "source": "Linux drivers/accel/habanalabs/common/device.c, hl_device_reset",
      "condition": "ResetFailed",
      "fault": {
        "type": "ResetFailed",
        "severity": "fatal",
        "remedy": "reboot"
      }
    }
  ],
  "activity": {
    "utilization": {
      "above": 0.05
    },
    "isForHoldersOnly": true
  },
  "resources": [
    {
      "resource": "habana.ai/gaudi",
      "ids": [
        "{uuid}",
        "{pciAddress}",
        "accel{minor}"
      ]
    },
    {
      "resource": "gaudi.intel.com",
      "ids": [
        "{dashedAddress}-{pciDevice}",
        "accel{minor}"
      ]
    }
  ]
};
