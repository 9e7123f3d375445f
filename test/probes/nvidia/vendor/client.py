# Reads all GPUs with the client of the vendor, pynvml, and prints its figures as JSON: one object for each GPU, by the keys of the test.
# A figure that the library does not have is absent. The folders of the client and of the library are PYTHONPATH and LD_LIBRARY_PATH.
import json
import pynvml as n


def told(call, *arguments):
    try:
        return call(*arguments)
    except n.NVMLError as error:
        if error.value != n.NVML_ERROR_NOT_SUPPORTED:
            raise
        return None


def figures(gpu):
    figure = {}

    def put(**values):
        figure.update({key: value for key, value in values.items() if value is not None})

    def part(answer, *names):
        return [None if answer is None else getattr(answer, name) for name in names]

    put(uuid=told(n.nvmlDeviceGetUUID, gpu), name=told(n.nvmlDeviceGetName, gpu), serial=told(n.nvmlDeviceGetSerial, gpu))
    put(vbios=told(n.nvmlDeviceGetVbiosVersion, gpu), minor=told(n.nvmlDeviceGetMinorNumber, gpu))
    put(bus_id=n.nvmlDeviceGetPciInfo(gpu).busId)
    total, reserved, used = part(told(n.nvmlDeviceGetMemoryInfo, gpu, n.nvmlMemory_v2), "total", "reserved", "used")
    put(memory_total=total, memory_reserved=reserved, memory_used=used)
    total, used = part(told(n.nvmlDeviceGetBAR1MemoryInfo, gpu), "bar1Total", "bar1Used")
    put(bar1_total=total, bar1_used=used)
    busy, memory = part(told(n.nvmlDeviceGetUtilizationRates, gpu), "gpu", "memory")
    put(util_gpu=busy, util_memory=memory)
    for name, call in (
        ("encoder", n.nvmlDeviceGetEncoderUtilization),
        ("decoder", n.nvmlDeviceGetDecoderUtilization),
        ("jpeg", n.nvmlDeviceGetJpgUtilization),
        ("ofa", n.nvmlDeviceGetOfaUtilization),
    ):
        answer = told(call, gpu)
        put(**{"util_" + name: answer and answer[0]})
    put(temperature=told(n.nvmlDeviceGetTemperatureV, gpu, n.NVML_TEMPERATURE_GPU))
    put(margin=told(n.nvmlDeviceGetMarginTemperature, gpu))
    for name in ("GRAPHICS", "SM", "MEM", "VIDEO"):
        clock = getattr(n, "NVML_CLOCK_" + name)
        put(**{"clock_" + name.lower(): told(n.nvmlDeviceGetClockInfo, gpu, clock)})
        put(**{"max_clock_" + name.lower(): told(n.nvmlDeviceGetMaxClockInfo, gpu, clock)})
    put(limit_enforced=told(n.nvmlDeviceGetEnforcedPowerLimit, gpu), limit_default=told(n.nvmlDeviceGetPowerManagementDefaultLimit, gpu))
    put(limit_requested=told(n.nvmlDeviceGetPowerManagementLimit, gpu))
    limits = told(n.nvmlDeviceGetPowerManagementLimitConstraints, gpu)
    put(limit_minimum=limits and limits[0], limit_maximum=limits and limits[1])
    put(pstate=told(n.nvmlDeviceGetPerformanceState, gpu), persistence=told(n.nvmlDeviceGetPersistenceMode, gpu))
    put(generation=told(n.nvmlDeviceGetCurrPcieLinkGeneration, gpu), max_generation=told(n.nvmlDeviceGetMaxPcieLinkGeneration, gpu))
    put(width=told(n.nvmlDeviceGetCurrPcieLinkWidth, gpu), max_width=told(n.nvmlDeviceGetMaxPcieLinkWidth, gpu))
    put(replays=told(n.nvmlDeviceGetPcieReplayCounter, gpu))
    ecc = told(n.nvmlDeviceGetEccMode, gpu)
    put(ecc_now=ecc and ecc[0], ecc_pending=ecc and ecc[1])
    mig = told(n.nvmlDeviceGetMigMode, gpu)
    put(mig_now=mig and mig[0], mig_pending=mig and mig[1])
    rows = told(n.nvmlDeviceGetRemappedRows, gpu)
    put(rows_correctable=rows and rows[0], rows_uncorrectable=rows and rows[1], rows_pending=rows and rows[2], rows_failed=rows and rows[3])
    names = ("max", "high", "partial", "low", "none")
    for name, banks in zip(names, part(told(n.nvmlDeviceGetRowRemapperHistogram, gpu), *names)):
        put(**{"banks_" + name: banks})
    for counter, period in ((n.NVML_VOLATILE_ECC, "volatile"), (n.NVML_AGGREGATE_ECC, "lifetime")):
        for kind, severity in ((n.NVML_MEMORY_ERROR_TYPE_CORRECTED, "correctable"), (n.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, "uncorrectable")):
            for location in ("SRAM", "DRAM"):
                place = getattr(n, "NVML_MEMORY_LOCATION_" + location)
                put(**{" ".join((period, severity, location.lower())): told(n.nvmlDeviceGetMemoryErrorCounter, gpu, kind, counter, place)})
    reasons = told(n.nvmlDeviceGetCurrentClocksEventReasons, gpu)
    if reasons is not None:
        put(
            reason_gpu_idle=int(reasons & n.nvmlClocksEventReasonGpuIdle != 0),
            reason_sw_power_cap=int(reasons & n.nvmlClocksEventReasonSwPowerCap != 0),
            reason_hw_slowdown=int(reasons & n.nvmlClocksThrottleReasonHwSlowdown != 0),
            reason_hw_thermal_slowdown=int(reasons & n.nvmlClocksThrottleReasonHwThermalSlowdown != 0),
            reason_sw_thermal_slowdown=int(reasons & n.nvmlClocksEventReasonSwThermalSlowdown != 0),
        )
    for key, field in (
        ("memory_temperature", n.NVML_FI_DEV_MEMORY_TEMP),
        ("energy", n.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION),
        ("power", n.NVML_FI_DEV_POWER_INSTANT),
        ("power_average", n.NVML_FI_DEV_POWER_AVERAGE),
        ("power_cap_time", n.NVML_FI_DEV_PERF_POLICY_POWER),
        ("heat_time", n.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN),
        ("margin_shutdown", n.NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT),
        ("margin_slowdown", n.NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT),
        ("rollovers", n.NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER),
        ("recovery", n.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION),
    ):
        value = n.nvmlDeviceGetFieldValues(gpu, [field])[0]
        forms = {
            n.NVML_VALUE_TYPE_DOUBLE: "dVal",
            n.NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal",
            n.NVML_VALUE_TYPE_UNSIGNED_LONG: "ulVal",
            n.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal",
            n.NVML_VALUE_TYPE_SIGNED_LONG_LONG: "sllVal",
            n.NVML_VALUE_TYPE_SIGNED_INT: "siVal",
            n.NVML_VALUE_TYPE_UNSIGNED_SHORT: "usVal",
        }
        if value.nvmlReturn == n.NVML_SUCCESS:
            put(**{key: getattr(value.value, forms[value.valueType])})
    put(processes=[{"pid": each.pid, "memory": each.usedGpuMemory} for each in n.nvmlDeviceGetComputeRunningProcesses(gpu)])
    links = []
    for link in range(n.NVML_NVLINK_MAX_LINKS):
        try:
            links.append(n.nvmlDeviceGetNvLinkState(gpu, link))
        except n.NVMLError:
            break
    put(links=links)
    return figure


n.nvmlInit()
print(json.dumps([figures(n.nvmlDeviceGetHandleByIndex(index)) for index in range(n.nvmlDeviceGetCount())]))
n.nvmlShutdown()
