// Written by `npm run generate` from families/qat.yaml. Not edited by hand.
export const declaration: object = {
  "family": "qat",
  "summary": "Intel QuickAssist (QAT) accelerators",
  "proven": "Nothing of it was checked against hardware: no capture was available. The files follow the kernel's documentation (sysfs-driver-qat, sysfs-driver-qat_ras). Debug files are not read, because their reads send queries to the firmware.",
  "devices": [
    {
      "kind": "pf",
      "find": {
        "pci": {
          "vendor": "0x8086",
          "devices": [
            "0x0435",
            "0x37c8",
            "0x19e2",
            "0x4940",
            "0x4942",
            "0x4944",
            "0x4946",
            "0x4948"
          ],
          "functions": "physical"
        }
      },
      "id": "{pci}",
      "facts": {
        "vendor": "Intel"
      }
    },
    {
      "kind": "vf",
      "find": {
        "pci": {
          "vendor": "0x8086",
          "devices": [
            "0x0443",
            "0x37c9",
            "0x19e3",
            "0x4941",
            "0x4943",
            "0x4945",
            "0x4947",
            "0x4949"
          ],
          "functions": "virtual"
        }
      },
      "id": "{pci}",
      "parent": "{physicalFunction}",
      "facts": {
        "vendor": "Intel",
        "physicalFunction": {
          "link": "physfn"
        },
        "minor": {
          "link": "iommu_group"
        }
      },
      "nodes": [
        "/dev/vfio/{minor}",
        "/dev/vfio/vfio"
      ]
    }
  ],
  "bus": [
    {
      "kind": "pf",
      "vendor": "0x8086",
      "devices": [
        "0x0435",
        "0x37c8",
        "0x19e2",
        "0x4940",
        "0x4942",
        "0x4944",
        "0x4946",
        "0x4948"
      ],
      "drivers": [
        "dh895xcc",
        "c6xx",
        "c3xxx",
        "4xxx",
        "420xx",
        "6xxx"
      ]
    }
  ],
  "pcie": true,
  "readings": [
    {
      "metric": "device_errors_total",
      "kinds": [
        "pf"
      ],
      "file": "qat_ras/errors_correctable",
      "labels": {
        "kind": "correctable"
      }
    },
    {
      "metric": "device_errors_total",
      "kinds": [
        "pf"
      ],
      "file": "qat_ras/errors_nonfatal",
      "labels": {
        "kind": "nonfatal"
      }
    },
    {
      "metric": "device_errors_total",
      "kinds": [
        "pf"
      ],
      "file": "qat_ras/errors_fatal",
      "labels": {
        "kind": "fatal"
      }
    },
    {
      "metric": "device_qat_ring_pairs",
      "help": "Ring pairs of the device.",
      "kinds": [
        "pf"
      ],
      "file": "qat/num_rps"
    }
  ],
  "conditions": [
    {
      "type": "DeviceDown",
      "severity": "info",
      "meaning": "The administrator or the driver has switched the physical function off. Without virtual functions this is no fault.",
      "remedy": "none",
      "source": "Linux Documentation/ABI/testing/sysfs-driver-qat: qat/state down",
      "kinds": [
        "pf"
      ],
      "file": "qat/state",
      "map": {
        "up": "up",
        "down": "down"
      },
      "equals": [
        "down"
      ]
    },
    {
      "type": "ParentDown",
      "severity": "fatal",
      "meaning": "The physical function of this virtual function is down, so the virtual function cannot work.",
      "remedy": "reload-driver",
      "source": "Linux Documentation/ABI/testing/sysfs-driver-qat: qat/state of the physical function",
      "kinds": [
        "vf"
      ],
      "file": "physfn/qat/state",
      "map": {
        "up": "up",
        "down": "down"
      },
      "equals": [
        "down"
      ],
      "for": "10s",
      "recovery": "30s"
    },
    {
      "type": "FatalError",
      "severity": "fatal",
      "meaning": "The device reported a fatal error, which needs a reset.",
      "remedy": "reset",
      "source": "Linux Documentation/ABI/testing/sysfs-driver-qat_ras: errors_fatal since the driver was loaded or the device was reset",
      "kinds": [
        "pf"
      ],
      "file": "qat_ras/errors_fatal",
      "above": 0,
      "latched": true
    },
    {
      "type": "ParentFatalError",
      "severity": "fatal",
      "meaning": "The physical function of this virtual function reported a fatal error, which needs a reset.",
      "remedy": "reset",
      "source": "Linux Documentation/ABI/testing/sysfs-driver-qat_ras: errors_fatal of the physical function",
      "kinds": [
        "vf"
      ],
      "file": "physfn/qat_ras/errors_fatal",
      "above": 0,
      "latched": true
    },
    {
      "type": "NonfatalErrors",
      "severity": "degraded",
      "meaning": "The device reported errors that it could not correct and that did not stop it.",
      "remedy": "inspect",
      "source": "Linux Documentation/ABI/testing/sysfs-driver-qat_ras: errors_nonfatal",
      "kinds": [
        "pf"
      ],
      "file": "qat_ras/errors_nonfatal",
      "growth": {
        "above": 0,
        "within": "1h"
      },
      "recovery": "10m"
    },
    {
      "type": "HeartbeatLost",
      "severity": "fatal",
      "meaning": "The firmware of the device does not answer, although its state is up and it counts no error. Requests hang.",
      "remedy": "reset",
      "source": "kernel log: Linux drivers/crypto/intel/qat/qat_common/adf_heartbeat.c, adf_heartbeat_status \"QAT is not responding\"; printed when somebody reads the heartbeat; ends when the engines start again",
      "log": {}
    },
    {
      "type": "RestartFailed",
      "severity": "fatal",
      "meaning": "The driver could not start the device again after an error, so it cannot be used.",
      "remedy": "reboot",
      "source": "kernel log: Linux drivers/crypto/intel/qat/qat_common/adf_aer.c, adf_device_reset_worker and adf_error_detected; ends when the engines start",
      "log": {}
    }
  ],
  "lines": [
    {
      "event": "heartbeat-lost",
      "drivers": [
        "dh895xcc",
        "c6xx",
        "c3xxx",
        "4xxx",
        "420xx",
        "6xxx"
      ],
      "text": "Heartbeat ERROR: QAT is not responding.",
      "means": "the firmware of the device does not answer the driver",
      "source": "Linux drivers/crypto/intel/qat/qat_common/adf_heartbeat.c, adf_heartbeat_status",
      "condition": "HeartbeatLost"
    },
    {
      "event": "fatal-error",
      "drivers": [
        "dh895xcc",
        "c6xx",
        "c3xxx",
        "4xxx",
        "420xx",
        "6xxx"
      ],
      "text": "Fatal error, reset required",
      "means": "the device reported a fatal error, which needs a reset",
      "source": "Linux drivers/crypto/intel/qat/qat_common/adf_isr.c, adf_handle_ras_int",
      "fault": {
        "type": "FatalErrorReported",
        "severity": "degraded",
        "remedy": "restart-workload"
      }
    },
    {
      "event": "restart-failed",
      "drivers": [
        "dh895xcc",
        "c6xx",
        "c3xxx",
        "4xxx",
        "420xx",
        "6xxx"
      ],
      "text": "Restart device failed",
      "means": "the driver could not start the device again after an error",
      "source": "Linux drivers/crypto/intel/qat/qat_common/adf_aer.c, adf_device_reset_worker",
      "condition": "RestartFailed"
    },
    {
      "event": "not-recovered",
      "drivers": [
        "dh895xcc",
        "c6xx",
        "c3xxx",
        "4xxx",
        "420xx",
        "6xxx"
      ],
      "text": "Can't recover from device error",
      "means": "the link to the device is lost for good",
      "source": "Linux drivers/crypto/intel/qat/qat_common/adf_aer.c, adf_error_detected",
      "condition": "RestartFailed"
    },
    {
      "event": "started",
      "drivers": [
        "dh895xcc",
        "c6xx",
        "c3xxx",
        "4xxx",
        "420xx",
        "6xxx"
      ],
      "text": "qat_dev# started # acceleration engines",
      "means": "the driver started the engines of the device",
      "source": "Linux drivers/crypto/intel/qat/qat_common/adf_accel_engine.c, adf_ae_start",
      "ends": [
        "HeartbeatLost",
        "RestartFailed"
      ]
    }
  ],
  "resources": [
    {
      "resource": "qat.intel.com/*",
      "kinds": [
        "vf"
      ],
      "ids": [
        "{pciAddress}"
      ]
    },
    {
      "resource": "qat.intel.com",
      "kinds": [
        "vf"
      ],
      "ids": [
        "{dashedAddress}"
      ]
    }
  ]
};
