// SPDX-License-Identifier: MPL-2.0
//! The table row by row, and everything that can be asked for on every machine.

use super::{negotiate as negotiate_for, *};
use crate::device::{Check, CudaTuning, Gpu, MIN_FREE_VRAM, Outcome, examine};
use crate::engine::EngineKind;

const GIB: u64 = 1 << 30;

fn negotiate(
    kind: EngineKind,
    request: &Request,
    probe: &mut dyn Probe,
) -> Result<Decision, Refusal> {
    negotiate_for(kind.capabilities(), request, probe)
}

/// Fault of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ill {
    Nothing,
    NoDriver,
    NoDevice,
    HiddenDevices,
    NoSuchGpu,
    OldDriver,
    NamelessDriver,
    OldGpu,
    FullGpu,
    CpuOnlyRuntime,
    MissingLibraries,
    FailingSession,
}

impl Ill {
    const ALL: [Self; 12] = [
        Self::Nothing,
        Self::NoDriver,
        Self::NoDevice,
        Self::HiddenDevices,
        Self::NoSuchGpu,
        Self::OldDriver,
        Self::NamelessDriver,
        Self::OldGpu,
        Self::FullGpu,
        Self::CpuOnlyRuntime,
        Self::MissingLibraries,
        Self::FailingSession,
    ];

    /// The reason, and the number of questions that were asked until it was known.
    fn expected(self) -> (&'static str, usize) {
        match self {
            Self::Nothing => ("GPU validation passed: VRAM 6.9 GiB free, CUDA 12.4", 4),
            Self::NoDriver => ("no NVIDIA driver: libnvidia-ml.so.1 is not there", 1),
            Self::NoDevice => ("the NVIDIA driver 550.54.14 finds no device", 1),
            Self::HiddenDevices => ("CUDA may use none of the 1 devices", 1),
            Self::NoSuchGpu => ("there is no GPU 7; the last GPU is 0", 1),
            Self::OldDriver => ("the NVIDIA driver 470.256.02 is older than 525", 1),
            Self::NamelessDriver => ("the NVIDIA driver ? is older than 525", 1),
            Self::OldGpu => ("compute capability 6.1 of GTX 1080 is below 7.5", 1),
            Self::FullGpu => ("insufficient VRAM (1.2 GiB free < 1.5 GiB required)", 1),
            Self::CpuOnlyRuntime => ("this ONNX Runtime has no CUDA provider", 2),
            Self::MissingLibraries => ("libcudnn.so.9 was not found", 3),
            Self::FailingSession => ("CUDA failure 35", 4),
        }
    }
}

/// A machine by script, which counts the questions.
struct Machine {
    ill: Ill,
    asked: Vec<&'static str>,
}

impl Machine {
    fn new(ill: Ill) -> Self {
        Self {
            ill,
            asked: Vec::new(),
        }
    }

    fn fails_at(&self, ill: Ill, reason: &str) -> Result<String, Fault> {
        match self.ill == ill {
            true => Err(Fault::Runtime(reason.to_owned())),
            false => Ok("as it should be".to_owned()),
        }
    }
}

fn gpu(name: &str, compute_capability: (u32, u32), free_memory: u64) -> Gpu {
    Gpu {
        name: name.to_owned(),
        compute_capability,
        memory: 8 * GIB,
        free_memory,
    }
}

fn driver(version: &str, gpus: Vec<Gpu>) -> DriverInfo {
    DriverInfo {
        version: version.to_owned(),
        cuda: "12.4".to_owned(),
        devices: gpus.len() as u32,
        gpus,
    }
}

impl Probe for Machine {
    fn driver(&mut self, _request: &Request) -> Result<DriverInfo, String> {
        self.asked.push("driver");
        let good = gpu("RTX 3070", (8, 6), GIB * 7 - 1);
        Ok(match self.ill {
            Ill::NoDriver => {
                return Err("no NVIDIA driver: libnvidia-ml.so.1 is not there".to_owned());
            }
            Ill::NoDevice => driver("550.54.14", vec![]),
            Ill::HiddenDevices => DriverInfo {
                devices: 1,
                ..driver("550.54.14", vec![])
            },
            // Such a driver does not know the function that tells the free memory.
            Ill::OldDriver => DriverInfo {
                devices: 1,
                ..driver("470.256.02", vec![])
            },
            Ill::NamelessDriver => driver("?", vec![good]),
            Ill::OldGpu => driver("550.54.14", vec![gpu("GTX 1080", (6, 1), 7 * GIB)]),
            Ill::FullGpu => driver("550.54.14", vec![gpu("RTX", (8, 6), GIB * 5 / 4)]),
            _ => driver("550.54.14", vec![good]),
        })
    }

    fn provider(&mut self, _request: &Request) -> Result<String, Fault> {
        self.asked.push("provider");
        self.fails_at(
            Ill::CpuOnlyRuntime,
            "this ONNX Runtime has no CUDA provider",
        )
    }

    fn libraries(&mut self, _request: &Request) -> Result<String, Fault> {
        self.asked.push("libraries");
        self.fails_at(Ill::MissingLibraries, "libcudnn.so.9 was not found")
    }

    fn session(&mut self, _cuda: &Cuda, _request: &Request) -> Result<(), Fault> {
        self.asked.push("session");
        self.fails_at(Ill::FailingSession, "CUDA failure 35")
            .map(|_| ())
    }
}

fn request(device: Option<DeviceChoice>) -> Request {
    Request {
        device,
        ..Request::default()
    }
}

fn closed(variable: &'static str, value: &str) -> GpuPolicy {
    GpuPolicy::Disabled {
        variable,
        value: value.to_owned(),
    }
}

/// Returns the request with the `gpu-id` that shows the fault.
fn request_for(ill: Ill, request: &Request) -> Request {
    Request {
        gpu_id: (ill == Ill::NoSuchGpu).then_some(7),
        ..request.clone()
    }
}

fn info(line: &str) -> (Severity, String) {
    (Severity::Info, line.to_owned())
}

fn warning(line: &str) -> (Severity, String) {
    (Severity::Warning, line.to_owned())
}

#[test]
fn row_1_another_engine_with_device_cuda() {
    let mut machine = Machine::new(Ill::Nothing);
    let wanted = request(Some(DeviceChoice::Cuda));
    let decision = negotiate(EngineKind::OpenSeeFace, &wanted, &mut machine).unwrap();
    let line = "GPU mode is reserved for InsightFace only. Engine 'openseeface' will run in CPU-only mode.";
    assert_eq!(decision.placement, Placement::Cpu);
    assert_eq!(decision.log, [warning(line)]);
    assert_eq!(decision.reason, line);
    assert_eq!(decision.unmet, Some(Unmet::CpuOnlyEngine));
    assert!(machine.asked.is_empty());
}

#[test]
fn row_2_another_engine_runs_on_the_processor() {
    for device in [None, Some(DeviceChoice::Auto), Some(DeviceChoice::Cpu)] {
        let mut machine = Machine::new(Ill::Nothing);
        let decision = negotiate(EngineKind::MediaPipe, &request(device), &mut machine).unwrap();
        let line = "CPU-only mode (GPU disabled or not supported for this engine)";
        assert_eq!(decision.placement, Placement::Cpu);
        assert_eq!(decision.log, [info(line)]);
        assert_eq!(decision.reason, line);
        assert_eq!(decision.unmet, None);
        assert!(machine.asked.is_empty());
    }
}

#[test]
fn row_3_insightface_runs_on_the_gpu() {
    for device in [None, Some(DeviceChoice::Auto), Some(DeviceChoice::Cuda)] {
        for fallback in [true, false] {
            let mut machine = Machine::new(Ill::Nothing);
            let wanted = Request {
                fallback,
                max_vram: 3 * GIB,
                tuning: CudaTuning {
                    warm_up_runs: 7,
                    ..CudaTuning::default()
                },
                ..request(device)
            };
            let decision = negotiate(EngineKind::InsightFace, &wanted, &mut machine).unwrap();
            let cuda = Cuda {
                index: 0,
                visible_devices: None,
                max_vram: 3 * GIB,
                free_memory: 7 * GIB - 1,
                fallback,
                tuning: wanted.tuning,
            };
            assert_eq!(decision.placement, Placement::Cuda(cuda));
            assert_eq!(decision.placement.device(), "cuda:0");
            let passed = "GPU validation passed: VRAM 6.9 GiB free, CUDA 12.4";
            let lines = [
                info("GPU mode requested for engine: insightface"),
                info(passed),
                info("GPU mode ENABLED for insightface"),
            ];
            assert_eq!(decision.log, lines);
            assert_eq!(decision.reason, passed);
            assert_eq!(decision.unmet, None);
            assert_eq!(
                machine.asked,
                ["driver", "provider", "libraries", "session"]
            );
        }
    }
}

#[test]
fn row_4_insightface_falls_back() {
    let mut machine = Machine::new(Ill::FullGpu);
    let decision = negotiate(
        EngineKind::InsightFace,
        &request(Some(DeviceChoice::Cuda)),
        &mut machine,
    )
    .unwrap();
    let line = "GPU requested but unavailable: insufficient VRAM (1.2 GiB free < 1.5 GiB required)";
    assert_eq!(decision.placement, Placement::Cpu);
    assert_eq!(
        decision.log,
        [warning(line), info("Auto-fallback to CPU enabled")]
    );
    assert_eq!(decision.reason, line);
    let fault = Fault::FreeMemory {
        free: GIB * 5 / 4,
        required: MIN_FREE_VRAM,
    };
    assert_eq!(decision.unmet, Some(Unmet::Fault(fault)));
}

#[test]
fn row_5_insightface_may_not_fall_back() {
    let wanted = Request {
        fallback: false,
        ..Request::default()
    };
    let mut machine = Machine::new(Ill::NoDriver);
    let refusal = negotiate(EngineKind::InsightFace, &wanted, &mut machine).unwrap_err();
    let fault = Refusal::Unavailable(Fault::NoDriver(
        "no NVIDIA driver: libnvidia-ml.so.1 is not there".to_owned(),
    ));
    assert_eq!(refusal, fault);
    let line = "GPU requested but unavailable: no NVIDIA driver: libnvidia-ml.so.1 is not there";
    assert_eq!(refusal.to_string(), line);
}

#[test]
fn row_6_insightface_with_device_cpu() {
    for gpu_policy in [GpuPolicy::Allowed, closed("TRACKING_DISABLE_GPU", "1")] {
        for fallback in [true, false] {
            let wanted = Request {
                fallback,
                gpu_policy: gpu_policy.clone(),
                ..request(Some(DeviceChoice::Cpu))
            };
            let mut machine = Machine::new(Ill::Nothing);
            let decision = negotiate(EngineKind::InsightFace, &wanted, &mut machine).unwrap();
            let line = "CPU mode requested for engine: insightface";
            assert_eq!(decision.placement, Placement::Cpu);
            assert_eq!(decision.log, [info(line)]);
            assert_eq!(decision.reason, line);
            assert_eq!(decision.unmet, None);
            assert!(machine.asked.is_empty());
        }
    }
}

#[test]
fn a_gpu_that_nobody_asked_for_is_not_missed_where_there_is_none() {
    let numbered = Request {
        gpu_id: Some(0),
        ..Request::default()
    };
    let enabled = Request {
        gpu_policy: GpuPolicy::Enabled,
        ..Request::default()
    };
    for (wanted, is_asked_for) in [
        (request(None), false),
        (request(Some(DeviceChoice::Auto)), false),
        (request(Some(DeviceChoice::Cuda)), true),
        (numbered, true),
        (enabled, true),
    ] {
        for ill in Ill::ALL {
            let is_absent = matches!(ill, Ill::NoDriver | Ill::NoDevice | Ill::HiddenDevices);
            if matches!(ill, Ill::Nothing | Ill::NoSuchGpu) {
                continue;
            }
            let case = format!("{ill:?} {wanted:?}");
            let mut machine = Machine::new(ill);
            let decision = negotiate(EngineKind::InsightFace, &wanted, &mut machine).unwrap();
            let is_quiet = is_absent && !is_asked_for;
            assert_eq!(decision.unmet.is_none(), is_quiet, "{case}");
            if is_quiet {
                let line = format!("CPU mode selected for insightface: {}", ill.expected().0);
                assert_eq!(decision.log, [info(&line)], "{case}");
                assert_eq!(decision.reason, line, "{case}");
            }
        }
    }
}

#[test]
fn row_7_the_environment_keeps_insightface_from_the_gpu() {
    for (gpu_policy, named) in [
        (
            closed("TRACKING_DISABLE_GPU", "yes"),
            "TRACKING_DISABLE_GPU=yes",
        ),
        (
            closed("STEP5_GPU_ENGINES", ""),
            "does not set STEP5_GPU_ENGINES",
        ),
    ] {
        let wanted = Request {
            gpu_policy,
            ..Request::default()
        };
        let mut machine = Machine::new(Ill::Nothing);
        let refusal = negotiate(EngineKind::InsightFace, &wanted, &mut machine).unwrap_err();
        let told = refusal.to_string();
        for part in ["InsightFace is GPU-only (", named] {
            assert!(told.contains(part), "{part:?} not in {told}");
        }
        assert!(machine.asked.is_empty());
        for device in [DeviceChoice::Auto, DeviceChoice::Cuda] {
            let wanted = Request {
                device: Some(device),
                ..wanted.clone()
            };
            let decision = negotiate(EngineKind::InsightFace, &wanted, &mut machine).unwrap();
            assert_eq!(
                decision.placement.device(),
                "cuda:0",
                "a property beats the environment"
            );
        }
    }
}

/// Everything that can be asked for.
fn requests() -> Vec<Request> {
    let devices = [
        None,
        Some(DeviceChoice::Auto),
        Some(DeviceChoice::Cpu),
        Some(DeviceChoice::Cuda),
    ];
    let policies = [
        GpuPolicy::Allowed,
        GpuPolicy::Enabled,
        closed("TRACKING_DISABLE_GPU", "1"),
        closed("STEP5_ENABLE_GPU", ""),
        closed("STEP5_GPU_ENGINES", "mediapipe"),
    ];
    let mut requests = Vec::new();
    for device in devices {
        for gpu_policy in &policies {
            for fallback in [true, false] {
                requests.push(Request {
                    device,
                    gpu_policy: gpu_policy.clone(),
                    fallback,
                    ..Request::default()
                });
            }
        }
    }
    requests
}

#[test]
fn no_engine_but_insightface_reaches_the_gpu() {
    let others = EngineKind::ALL
        .into_iter()
        .filter(|kind| *kind != EngineKind::InsightFace);
    for kind in others {
        for wanted in requests() {
            for ill in Ill::ALL {
                let case = format!("{kind:?} {ill:?} {wanted:?}");
                let mut machine = Machine::new(ill);
                let decision =
                    negotiate(kind, &request_for(ill, &wanted), &mut machine).expect(&case);
                assert_eq!(decision.placement, Placement::Cpu, "{case}");
                assert!(machine.asked.is_empty(), "{case}");
                assert!(!decision.reason.is_empty(), "{case}");
                let is_wrong = wanted.device == Some(DeviceChoice::Cuda);
                assert_eq!(decision.unmet.is_some(), is_wrong, "{case}");
                let severity = match is_wrong {
                    true => Severity::Warning,
                    false => Severity::Info,
                };
                assert_eq!(
                    decision.log,
                    [(severity, decision.reason.clone())],
                    "{case}"
                );
                assert_eq!(is_wrong, decision.reason.contains(kind.name()), "{case}");
            }
        }
    }
}

#[test]
fn insightface_is_where_the_table_has_it() {
    for wanted in requests() {
        for ill in Ill::ALL {
            let case = format!("{ill:?} {wanted:?}");
            let mut machine = Machine::new(ill);
            let answer = negotiate(
                EngineKind::InsightFace,
                &request_for(ill, &wanted),
                &mut machine,
            );
            let (reason, questions) = ill.expected();
            if wanted.device == Some(DeviceChoice::Cpu) {
                assert_eq!(answer.expect(&case).placement, Placement::Cpu, "{case}");
                assert!(machine.asked.is_empty(), "{case}");
                continue;
            }
            let is_forbidden = matches!(wanted.gpu_policy, GpuPolicy::Disabled { .. });
            if wanted.device.is_none() && is_forbidden {
                let refused =
                    matches!(&answer, Err(Refusal::GpuOnly { because }) if !because.is_empty());
                assert!(refused, "{case}: {answer:?}");
                assert!(machine.asked.is_empty(), "{case}");
                continue;
            }
            assert_eq!(
                machine.asked.len(),
                questions,
                "{case}: {:?}",
                machine.asked
            );
            match answer {
                Ok(decision) => {
                    let is_on_gpu = decision.placement != Placement::Cpu;
                    assert_eq!(is_on_gpu, ill == Ill::Nothing, "{case}");
                    assert!(is_on_gpu || wanted.fallback, "{case}");
                    assert!(decision.reason.ends_with(reason), "{case}: {decision:?}");
                    assert!(!is_on_gpu || decision.unmet.is_none(), "{case}");
                    assert!(!decision.log.is_empty(), "{case}");
                }
                Err(Refusal::Unavailable(fault)) => {
                    assert!(!wanted.fallback, "{case}");
                    assert_eq!(fault.to_string(), reason, "{case}");
                }
                Err(other) => panic!("{case}: {other}"),
            }
        }
    }
}

#[test]
fn the_gpu_with_the_most_free_memory_is_taken_if_it_is_new_enough() {
    /// Several GPUs.
    struct Several(Vec<Gpu>);
    impl Probe for Several {
        fn driver(&mut self, _request: &Request) -> Result<DriverInfo, String> {
            Ok(driver("580.65.06", self.0.clone()))
        }
        fn provider(&mut self, _: &Request) -> Result<String, Fault> {
            Ok(String::new())
        }
        fn libraries(&mut self, _: &Request) -> Result<String, Fault> {
            Ok(String::new())
        }
        fn session(&mut self, _: &Cuda, _: &Request) -> Result<(), Fault> {
            Ok(())
        }
    }
    let some = |free: &[(u32, u64)]| {
        let gpus = free
            .iter()
            .map(|(major, free)| gpu("GPU", (*major, 5), free * GIB));
        Several(gpus.collect())
    };
    for (gpus, id, expected) in [
        (&[(8, 2), (8, 4), (8, 3)][..], None, "cuda:1"),
        (&[(8, 2), (6, 9)], None, "cuda:0"),
        (&[(8, 4), (8, 4)], None, "cuda:0"),
        (&[(8, 2), (8, 4)], Some(0), "cuda:0"),
        (&[(8, 4), (7, 2)], Some(1), "cuda:1"),
        (&[(8, 4), (8, 1)], Some(1), "cpu"),
        (&[(8, 4), (6, 4)], Some(1), "cpu"),
        (&[(8, 4)], Some(1), "cpu"),
        (&[(8, 4)], Some(u32::MAX), "cpu"),
        (&[(6, 4), (5, 4)], None, "cpu"),
    ] {
        let wanted = Request {
            gpu_id: id,
            ..Request::default()
        };
        let decision = negotiate(EngineKind::InsightFace, &wanted, &mut some(gpus)).unwrap();
        assert_eq!(decision.placement.device(), expected, "{gpus:?} {id:?}");
    }
}

#[test]
fn what_is_said_to_be_free_is_there_and_what_is_said_to_be_enough_is() {
    for (free, required, expected) in [
        (0, 1, "(0.0 GiB free < 0.1 GiB required)"),
        (GIB - 1, GIB, "(0.9 GiB free < 1.0 GiB required)"),
        (GIB, GIB + 1, "(1.0 GiB free < 1.1 GiB required)"),
        (u64::MAX, u64::MAX, "GiB required)"),
    ] {
        let told = crate::device::validation::insufficient(free, required);
        assert!(told.ends_with(expected), "{told}");
    }
}

#[test]
fn an_examination_goes_on_where_it_can() {
    for ill in Ill::ALL {
        let mut machine = Machine::new(ill);
        let wanted = request_for(ill, &Request::default());
        let found = examine(&wanted, &mut machine);
        let checks: Vec<Check> = found.iter().map(|(check, _)| *check).collect();
        assert_eq!(checks, Check::ALL, "{ill:?}");
        let (reason, _) = ill.expected();
        let failures: Vec<&Fault> = found
            .iter()
            .filter_map(|(_, outcome)| match outcome {
                Outcome::Failed(fault) => Some(fault),
                Outcome::Passed(_) | Outcome::Skipped(_) => None,
            })
            .collect();
        if ill == Ill::Nothing {
            assert!(failures.is_empty(), "{found:?}");
            continue;
        }
        let [fault] = failures.as_slice() else {
            panic!("{ill:?}: {found:?}");
        };
        assert_eq!(fault.to_string(), reason);
        assert!(machine.asked.contains(&"provider"), "{ill:?}");
        let ran = machine.asked.contains(&"session");
        assert_eq!(ran, ill == Ill::FailingSession, "{ill:?}");
    }
}
