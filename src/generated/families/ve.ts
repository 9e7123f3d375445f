// Written by `npm run generate` from families/ve.yaml. Not edited by hand.
export const declaration: object = {
  "family": "ve",
  "summary": "NEC Vector Engine (SX-Aurora TSUBASA) cards",
  "proven": "Id, serial number, firmware, cores and memory were checked against the captured files of a host with eight cards of the first generation. The states follow the source of the driver: all captured cards are online. The ids of the Kubernetes plugin are not known.",
  "devices": [
    {
      "kind": "card",
      "find": {
        "pci": {
          "vendor": "0x1bcf"
        }
      },
      "id": "{pci}",
      "aliases": [
        "ve{minor}"
      ],
      "facts": {
        "vendor": "NEC",
        "minor": {
          "entry": "ve/ve#"
        },
        "serial": {
          "file": "ve/ve#/serial"
        },
        "firmware": {
          "file": "ve/ve#/fw_version"
        }
      },
      "nodes": [
        "/dev/ve{minor}"
      ]
    }
  ],
  "bus": [
    {
      "kind": "card",
      "vendor": "0x1bcf",
      "devices": [
        "0x001c",
        "0x0039"
      ],
      "drivers": [
        "ve_drv"
      ],
      "nodes": 1
    }
  ],
  "pcie": true,
  "readings": [
    {
      "metric": "device_memory_total_bytes",
      "file": "ve/ve#/memory_size",
      "scale": 1073741824
    },
    {
      "metric": "device_ve_cores",
      "help": "Cores of the card.",
      "file": "ve/ve#/num_of_core"
    }
  ],
  "conditions": [
    {
      "type": "CardOffline",
      "severity": "fatal",
      "meaning": "The card takes no work, because it is offline, in maintenance or unavailable.",
      "remedy": "inspect",
      "source": "NEC driver ve_drv, enum ve_state: 1 online, 2 offline, 3 maintenance, 4 unavailable",
      "file": "ve/ve#/ve_state",
      "absent": [
        "0"
      ],
      "map": {
        "1": "online",
        "2": "offline",
        "3": "in maintenance",
        "4": "unavailable"
      },
      "equals": [
        "offline",
        "in maintenance",
        "unavailable"
      ],
      "for": "10s",
      "recovery": "30s"
    },
    {
      "type": "HardwareErrors",
      "severity": "degraded",
      "meaning": "The card raised interrupts for errors of its hardware.",
      "remedy": "inspect",
      "source": "kernel log: NEC driver ve_drv, main_ve1.c, ve1_intr \"Hw Error occurred\"",
      "log": {
        "above": 0,
        "within": "1h"
      }
    },
    {
      "type": "ResetFailed",
      "severity": "fatal",
      "meaning": "The card did not come back after a reset.",
      "remedy": "reboot",
      "source": "kernel log: NEC driver ve_drv, main_ve1.c, ve1_chip_reset_sbr \"VE RESET failed\"; ends when the driver starts",
      "log": {}
    }
  ],
  "lines": [
    {
      "event": "hardware-error",
      "drivers": [
        "ve_drv"
      ],
      "text": "Hw Error occurred (Entry = {entry})",
      "means": "the card reported an error of its hardware (interrupt {entry})",
      "source": "NEC driver ve_drv, main_ve1.c, ve1_intr",
      "condition": "HardwareErrors",
      "fault": {
        "type": "HardwareError",
        "severity": "degraded",
        "remedy": "restart-workload"
      }
    },
    {
      "event": "reset-failed",
      "drivers": [
        "ve_drv"
      ],
      "text": "Waited for # seconds, but VE RESET failed",
      "means": "the card did not come back after a reset",
      "source": "NEC driver ve_drv, main_ve1.c",
      "condition": "ResetFailed"
    },
    {
      "event": "link-lost",
      "drivers": [
        "ve_drv"
      ],
      "text": "PCI link is not recovered",
      "means": "the link to the card did not come back after a reset",
      "source": "NEC driver ve_drv, main.c, ve_recover_from_link_down",
      "condition": "ResetFailed"
    },
    {
      "event": "hardware-check-failed",
      "drivers": [
        "ve_drv"
      ],
      "text": "HW init check fail(#)",
      "means": "the card failed its own check and is unavailable",
      "source": "NEC driver ve_drv, main_ve3.c, ve3_wait_hw_identifier",
      "fault": {
        "type": "HardwareCheckFailed",
        "severity": "info",
        "remedy": "inspect"
      }
    },
    {
      "event": "hardware-check-timeout",
      "drivers": [
        "ve_drv"
      ],
      "text": "HW init check timeout",
      "means": "the card did not end its own check and is unavailable",
      "source": "NEC driver ve_drv, main_ve3.c, ve3_wait_hw_identifier",
      "fault": {
        "type": "HardwareCheckFailed",
        "severity": "info",
        "remedy": "inspect"
      }
    },
    {
      "event": "start-failed",
      "drivers": [
        "ve_drv"
      ],
      "text": "probe error (return ",
      "means": "the driver could not start the card",
      "source": "NEC driver ve_drv, main.c, ve_drv_probe",
      "condition": "StartFailed"
    },
    {
      "event": "started",
      "drivers": [
        "ve_drv"
      ],
      "text": "probe succeeded",
      "means": "the driver was loaded",
      "source": "NEC driver ve_drv, main.c",
      "ends": [
        "ResetFailed",
        "StartFailed"
      ]
    }
  ]
};
