// Written by `npm run generate` from families/intelnpu.yaml. Not edited by hand.
export const declaration: object = {
  "family": "intelnpu",
  "summary": "Intel NPUs (Core Ultra)",
  "proven": "Nothing of it was checked against hardware: no capture was available. PCI ids, files, units and lines follow the source of the driver (Linux drivers/accel/ivpu). The first id that Intel's plugin gives is known, and not those of a shared NPU.",
  "devices": [
    {
      "kind": "npu",
      "find": {
        "pci": {
          "vendor": "0x8086",
          "devices": [
            "0x7d1d",
            "0xad1d",
            "0x643e",
            "0xb03e",
            "0xfd3e"
          ]
        }
      },
      "id": "{pci}",
      "aliases": [
        "accel{minor}"
      ],
      "facts": {
        "vendor": "Intel",
        "minor": {
          "entry": "accel/accel#",
          "example": "{1}"
        },
        "model": {
          "file": "device",
          "map": {
            "0x7d1d": "Meteor Lake",
            "0xad1d": "Arrow Lake",
            "0x643e": "Lunar Lake",
            "0xb03e": "Panther Lake",
            "0xfd3e": "Wildcat Lake"
          }
        }
      },
      "nodes": [
        "/dev/accel/accel{minor}"
      ]
    }
  ],
  "bus": [
    {
      "kind": "npu",
      "vendor": "0x8086",
      "devices": [
        "0x7d1d",
        "0xad1d",
        "0x643e",
        "0xb03e",
        "0xfd3e"
      ],
      "drivers": [
        "intel_vpu"
      ],
      "nodes": 1
    }
  ],
  "pcie": true,
  "readings": [
    {
      "metric": "device_intelnpu_busy_seconds_total",
      "type": "counter",
      "help": "Time for which the NPU had jobs.",
      "file": "npu_busy_time_us",
      "scale": 0.000001,
      "container": true,
      "show": "Busy",
      "example": 0
    },
    {
      "metric": "device_memory_used_bytes",
      "file": "npu_memory_utilization",
      "example": 268435456
    },
    {
      "metric": "device_clock_hertz",
      "file": "npu_current_frequency_mhz",
      "scale": 1000000,
      "labels": {
        "clock": "npu"
      },
      "example": 1400
    },
    {
      "metric": "device_clock_max_hertz",
      "file": "npu_max_frequency_mhz",
      "scale": 1000000,
      "labels": {
        "clock": "npu"
      },
      "example": 1950
    }
  ],
  "conditions": [
    {
      "type": "Recoveries",
      "severity": "degraded",
      "meaning": "The driver resets the NPU again and again, which ends the jobs on it.",
      "remedy": "inspect",
      "source": "kernel log: Linux drivers/accel/ivpu/ivpu_pm.c, ivpu_pm_recovery_work",
      "log": {
        "above": 3,
        "within": "1h"
      }
    }
  ],
  "lines": [
    {
      "event": "recovery",
      "drivers": [
        "intel_vpu"
      ],
      "text": "*Recovering the NPU (reset *)",
      "means": "the driver resets the NPU, which ends the jobs on it",
      "source": "Linux drivers/accel/ivpu/ivpu_pm.c, ivpu_pm_recovery_work",
      "condition": "Recoveries",
      "fault": {
        "type": "NpuReset",
        "severity": "degraded",
        "remedy": "restart-workload"
      }
    },
    {
      "event": "resume-failed",
      "drivers": [
        "intel_vpu"
      ],
      "text": "*Failed to resume the FW: *",
      "means": "the driver could not start the firmware of the NPU",
      "source": "Linux drivers/accel/ivpu/ivpu_pm.c, ivpu_resume",
      "fault": {
        "type": "FirmwareNotStarted",
        "severity": "degraded",
        "remedy": "reload-driver"
      }
    }
  ],
  "resources": [
    {
      "resource": "npu.intel.com/accel",
      "ids": [
        "accel{minor}-0"
      ]
    }
  ]
};
