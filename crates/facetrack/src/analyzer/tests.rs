// SPDX-License-Identifier: MPL-2.0

use super::*;
use crate::engine::{EngineConfig, RunningMode, scripted};
use crate::image::ImageView;
use crate::model::ModelFile;
use crate::schedule::{Candidate, Decision, Schedule, ScheduleSettings};

const WIDTH: usize = 200;
const HEIGHT: usize = 100;

struct Bench {
    analyzer: Analyzer,
    schedule: Schedule,
    settings: ScheduleSettings,
    last_decision: Option<Decision>,
    frames: u64,
    pixel_aspect_ratio: f64,
    /// The pixels of all frames.
    pixels: &'static [u8],
}

const BLACK: &[u8] = &[0; WIDTH * HEIGHT * 3];

impl Bench {
    fn new(script: &str, tuning: Tuning) -> Self {
        let config = EngineConfig {
            script: Some(script.to_owned()),
            running_mode: RunningMode::Video,
            ..EngineConfig::default()
        };
        let engine = scripted::load(&config).expect("a good script");
        let source = ReportSource {
            engine: "scripted".to_owned(),
            device: "cpu".to_owned(),
            generator: "test".to_owned(),
            ..ReportSource::default()
        };
        Self {
            analyzer: Analyzer::new(engine, TrackerConfig::default(), tuning, source),
            schedule: Schedule::default(),
            settings: ScheduleSettings::default(),
            last_decision: None,
            frames: 0,
            pixel_aspect_ratio: 1.0,
            pixels: BLACK,
        }
    }

    fn every(mut self, inference_interval: u32) -> Self {
        self.settings.inference_interval = inference_interval;
        self
    }

    /// Analyses or holds the next frame, as the schedule decides.
    fn next(&mut self) -> Result<FrameReport, EngineError> {
        let frame = self.frame(self.frames + 1);
        let cut = self.analyzer.begin_frame(&frame);
        let candidate = Candidate {
            time: frame.time,
            arrival: None,
            can_hold: self.analyzer.can_hold(),
            cut,
        };
        let decision = self.schedule.decide(&self.settings, &candidate);
        self.frames += 1;
        self.last_decision = Some(decision);
        match decision {
            Decision::Analyze => {
                let found = self.analyzer.find(&frame)?;
                self.analyzer.complete(found)
            }
            Decision::Hold => Ok(self.analyzer.hold(&self.analyzer.outline(&frame))),
        }
    }

    fn hold(&mut self) -> FrameReport {
        self.frames += 1;
        self.analyzer.hold(&self.frame(self.frames).outline())
    }

    fn frame(&self, number: u64) -> Frame<'static> {
        Frame {
            image: ImageView::rgb(WIDTH, HEIGHT, self.pixels)
                .expect("a full image")
                .with_pixel_aspect_ratio(self.pixel_aspect_ratio),
            time: Duration::from_millis(40 * number),
        }
    }

    fn reports(&mut self, count: usize) -> Vec<FrameReport> {
        (0..count)
            .map(|_| self.next().expect("no failure"))
            .collect()
    }
}

fn ids(reports: &[FrameReport]) -> Vec<Vec<u32>> {
    reports
        .iter()
        .map(|report| report.faces.iter().map(|face| face.id).collect())
        .collect()
}

fn jaw(report: &FrameReport) -> f32 {
    let blendshapes = report.faces[0].face.blendshapes.as_ref();
    blendshapes
        .and_then(|blendshapes| blendshapes.get("jawOpen"))
        .expect("a measured jaw")
}

#[test]
fn faces_have_ids_and_leave_when_the_tracker_lets_go() {
    let mut bench = Bench::new("face from=2 to=3", Tuning::default());
    let reports = bench.reports(4);
    assert_eq!(ids(&reports), [vec![], vec![1], vec![1], vec![]]);
    let statuses: Vec<_> = reports.iter().map(|report| report.status).collect();
    use FrameStatus::{NoFace, Tracked};
    assert_eq!(statuses, [NoFace, Tracked, Tracked, NoFace]);
    assert!(bench.analyzer.take_left().is_empty(), "it may come back");
    bench.reports(7);
    assert_eq!(bench.analyzer.take_left(), [1]);
    assert!(bench.analyzer.take_left().is_empty());
    assert_eq!((reports[0].width, reports[0].height), (200, 100));
}

/// The pixels of a scene of small areas whose brightness looks random.
fn scene(seed: usize) -> &'static [u8] {
    let level = |x: usize, y: usize| {
        ((x / 20 * 73 + y / 10 * 151 + seed).wrapping_mul(0x9e37_79b1) >> 12) as u8
    };
    let pixels = (0..WIDTH * HEIGHT).flat_map(|at| [level(at % WIDTH, at / WIDTH); 3]);
    Vec::leak(pixels.collect())
}

#[test]
fn a_hard_cut_ends_ids_and_is_analysed_whatever_the_schedule_says() {
    let mut bench = Bench::new("face", Tuning::default()).every(10);
    bench.settings.max_fps = 1.0;
    bench.pixels = scene(1);
    let before = bench.reports(5);
    bench.pixels = scene(2);
    let after = bench.reports(5);
    let all = [before, after].concat();
    assert_eq!(
        ids(&all),
        [[1]; 5].into_iter().chain([[2]; 5]).collect::<Vec<_>>()
    );
    let analysed: Vec<_> = all
        .iter()
        .map(|it| it.faces[0].face.origin != Origin::Held)
        .collect();
    let cuts: Vec<_> = all.iter().map(|report| report.cut).collect();
    let first = |at: usize| (0..10).map(|frame| frame == at).collect::<Vec<_>>();
    assert_eq!(cuts, first(5));
    let want: Vec<_> = (0..10).map(|frame| frame % 5 == 0).collect();
    assert_eq!(analysed, want);
    assert_eq!(bench.analyzer.take_left(), [1]);
}

#[test]
fn a_cut_waits_for_a_frame_that_can_be_searched() {
    let mut bench = Bench::new("face; fail at=6", Tuning::default());
    bench.pixels = scene(1);
    bench.reports(5);
    bench.pixels = scene(2);
    assert!(bench.next().is_err());
    let after = bench.reports(2);
    assert_eq!(ids(&after), [[2], [2]]);
    assert_eq!([after[0].cut, after[1].cut], [true, false]);
    // A reset ends the shots before it.
    bench.pixels = scene(1);
    bench.analyzer.begin_frame(&bench.frame(10));
    bench.analyzer.reset();
    assert!(!bench.reports(1)[0].cut);
}

#[test]
fn smoothing_and_rest_values_end_at_a_hard_cut() {
    let tuning = Tuning {
        smoothing: Some(OneEuro::default()),
        neutral: NeutralSettings {
            time: 0.1,
            ..NeutralSettings::default()
        },
        ..Tuning::default()
    };
    let script = "face dx=0.02; landmarks";
    let bbox = |report: &FrameReport| report.faces[0].face.bbox;
    let is_corrected = |report: &FrameReport| {
        let blendshapes = report.faces[0].face.blendshapes.as_ref();
        blendshapes.is_some_and(|blendshapes| blendshapes.raw().is_some())
    };
    let raw = Bench::new(script, Tuning::default()).reports(8);
    let mut bench = Bench::new(script, tuning);
    bench.pixels = scene(1);
    let before = &bench.reports(7)[6];
    assert!(is_corrected(before));
    assert_ne!(bbox(before), bbox(&raw[6]));
    bench.pixels = scene(2);
    let first = &bench.reports(1)[0];
    assert!(first.cut && !is_corrected(first));
    assert_eq!(bbox(first), bbox(&raw[7]), "nothing is smoothed");
}

#[test]
fn cuts_can_be_ignored() {
    let tuning = Tuning {
        on_cut: OnCut::Ignore,
        ..Tuning::default()
    };
    let mut bench = Bench::new("face", tuning);
    bench.pixels = scene(1);
    let before = bench.reports(5);
    bench.pixels = scene(2);
    let all = [before, bench.reports(5)].concat();
    assert!(all.iter().all(|report| !report.cut));
    assert_eq!(ids(&all), [[1]; 10].map(Vec::from));
}

#[test]
fn a_reset_ends_ids_and_the_engines_history() {
    let mut bench = Bench::new("face", Tuning::default());
    let before = bench.reports(2);
    bench.analyzer.reset();
    assert_eq!(bench.analyzer.take_left(), [1]);
    let after = bench.reports(1);
    assert_eq!(ids(&after), [[2]]);
    let origin = |report: &FrameReport| report.faces[0].face.origin;
    assert_eq!(origin(&before[1]), Origin::Tracked);
    assert_eq!(origin(&after[0]), Origin::Detected);
}

fn by(select: Select) -> Tuning {
    Tuning {
        selection: Selection {
            select,
            ..Selection::default()
        },
        ..Tuning::default()
    }
}

#[test]
fn only_the_selected_face_is_reported_and_leaves() {
    let script = "face x=0.2 size=0.5 to=3; face x=0.8 size=0.3 to=6; landmarks";
    let mut bench = Bench::new(script, by(Select::Largest));
    let reports = bench.reports(14);
    let seen = vec![vec![1]; 3];
    assert_eq!(ids(&reports), [seen, vec![vec![]; 11]].concat());
    assert_eq!(bench.analyzer.take_left(), [1], "2 was never reported");
    assert_eq!(bench.analyzer.memories.len(), 0);
}

#[test]
fn a_face_leaves_when_another_one_is_selected() {
    let script = "face x=0.2 size=0.2; face x=0.8 size=0.6 from=3; landmarks";
    let mut bench = Bench::new(script, by(Select::Largest));
    // It is larger from the third frame on, and frames are 40 ms apart.
    assert_eq!(ids(&bench.reports(52)), vec![vec![1]; 52]);
    assert_eq!(bench.analyzer.take_left(), [0; 0]);
    let reports = bench.reports(3);
    assert_eq!(ids(&reports), [[2], [2], [2]]);
    assert!(reports[0].faces[0].face.pose.is_some(), "it is completed");
    assert_eq!(bench.analyzer.take_left(), [1]);

    bench.analyzer.apply_settings(by(Select::First));
    assert_eq!(ids(&bench.reports(2)), [[1], [1]]);
    assert_eq!(bench.analyzer.take_left(), [2]);
    bench.analyzer.apply_settings(Tuning::default());
    assert_eq!(ids(&bench.reports(1)), [[1, 2]]);
    bench.analyzer.reset();
    assert_eq!(bench.analyzer.take_left(), [1, 2]);
    bench.analyzer.apply_settings(by(Select::First));
    assert_eq!(ids(&bench.reports(2)), [[3], [3]], "a reset starts over");
}

#[test]
fn held_frames_repeat_the_selected_face() {
    let script = "face x=0.2 dx=0.01; face x=0.8 size=0.5";
    let mut bench = Bench::new(script, by(Select::First)).every(2);
    assert_eq!(ids(&bench.reports(4)), [[1]; 4]);
}

#[test]
fn faces_are_reported_in_stored_pixels_whatever_their_shape() {
    let tuning = Tuning {
        predict: true,
        ..Tuning::default()
    };
    let place = |report: &FrameReport| {
        let bbox = report.faces[0].face.bbox;
        [bbox.x, bbox.y, bbox.width, bbox.height]
    };
    let mut square = Bench::new("face dx=0.01", tuning).every(2);
    let mut wide = Bench::new("face dx=0.01", tuning).every(2);
    wide.pixel_aspect_ratio = 4.0 / 3.0;
    let outline = wide.frame(1).outline();
    assert_eq!(
        (outline.size.0, outline.stored_size),
        (267, [WIDTH, HEIGHT])
    );
    for (square, wide) in std::iter::zip(square.reports(8), wide.reports(8)) {
        assert_eq!((wide.width, wide.height), (200, 100));
        assert_eq!(wide.faces[0].face.origin, square.faces[0].face.origin);
        for (wide, square) in std::iter::zip(place(&wide), place(&square)) {
            assert!((wide - square).abs() < 1e-3, "{wide} {square}");
        }
    }
}

#[test]
fn frames_between_inferences_are_held() {
    let mut bench = Bench::new("face dx=0.01", Tuning::default()).every(3);
    let reports = bench.reports(7);
    let held: Vec<_> = reports
        .iter()
        .map(|report| report.faces[0].face.origin == Origin::Held)
        .collect();
    assert_eq!(held, [false, true, true, false, true, true, false]);
    assert_eq!(reports[0].faces[0].face.bbox, reports[2].faces[0].face.bbox);
    assert_ne!(reports[2].faces[0].face.bbox, reports[3].faces[0].face.bbox);

    bench.analyzer.reset();
    let after = bench.next().expect("no failure");
    assert_eq!(after.faces[0].face.origin, Origin::Detected, "analysed");

    let mut bench = Bench::new("", Tuning::default()).every(3);
    let statuses: Vec<_> = bench.reports(2).iter().map(|r| r.status).collect();
    assert_eq!(statuses, [FrameStatus::NoFace, FrameStatus::Skipped]);
}

#[test]
fn faces_between_inferences_move_on_where_that_is_wanted() {
    let tuning = Tuning {
        predict: true,
        ..Tuning::default()
    };
    let mut bench = Bench::new("face dx=0.01", tuning).every(3);
    let reports = bench.reports(9);
    let origins: Vec<_> = reports.iter().map(|r| r.faces[0].face.origin).collect();
    use Origin::{Detected, Held, Predicted, Tracked};
    let unseen_once = [Detected, Held, Held];
    let moving = [Tracked, Predicted, Predicted];
    assert_eq!(origins, [unseen_once, moving, moving].concat());
    // The scripted face moves by 2 px in every analysed frame.
    let steps: Vec<_> = reports[3..]
        .windows(2)
        .map(|pair| pair[1].faces[0].face.bbox.x - pair[0].faces[0].face.bbox.x)
        .collect();
    for step in &steps {
        assert!((step - 2.0 / 3.0).abs() < 1e-3, "{steps:?}");
    }

    bench.analyzer.reset();
    let origins: Vec<_> = bench
        .reports(2)
        .iter()
        .map(|r| r.faces[0].face.origin)
        .collect();
    assert_eq!(origins, [Detected, Held], "nothing is known of a new face");
}

/// A bench whose frames show these scenes, and the reports.
fn reports_of(mut bench: Bench, scenes: &[usize]) -> (Bench, Vec<FrameReport>) {
    bench.analyzer.apply_settings(Tuning {
        on_cut: OnCut::Ignore,
        predict: true,
        ..Tuning::default()
    });
    let report = |seed: &usize| {
        bench.pixels = scene(*seed);
        bench.next().expect("no failure")
    };
    let reports = scenes.iter().map(report).collect();
    (bench, reports)
}

#[test]
fn faces_between_inferences_stay_in_a_repeated_picture() {
    let bench = Bench::new("face dx=0.01", Tuning::default()).every(2);
    let (_, reports) = reports_of(bench, &[1, 2, 3, 3, 4, 5]);
    let repeated: Vec<_> = reports.iter().map(|report| report.repeated).collect();
    assert_eq!(repeated, [false, false, false, true, false, false]);
    let x: Vec<_> = reports.iter().map(|it| it.faces[0].face.bbox.x).collect();
    assert_eq!(x[3], x[2], "{x:?}");
    assert!(x[5] > x[4], "{x:?}");
}

#[test]
fn faces_do_not_age_in_repeated_pictures() {
    let scenes: Vec<_> = (0..8).flat_map(|picture| [picture; 5]).collect();
    let bench = Bench::new("face to=5", Tuning::default());
    let (mut bench, _) = reports_of(bench, &scenes);
    assert!(bench.analyzer.take_left().is_empty());
    let (mut bench, _) = reports_of(bench, &[9]);
    assert_eq!(bench.analyzer.take_left(), [1]);
    // A picture that stays counts as a scene at rest.
    let bench = Bench::new("face to=5", Tuning::default());
    let (mut bench, _) = reports_of(bench, &[1; 30]);
    assert_eq!(bench.analyzer.take_left(), [1]);
}

#[test]
fn analyses_per_second_are_limited() {
    let mut bench = Bench::new("face", Tuning::default());
    bench.settings.max_fps = 10.0;
    let decisions: Vec<_> = (0..6)
        .map(|_| {
            bench.next().expect("no failure");
            bench.last_decision == Some(Decision::Analyze)
        })
        .collect();
    assert_eq!(decisions, [true, false, false, true, false, true]);
    bench.settings.max_fps = 0.0;
    bench.next().expect("no failure");
    assert_eq!(bench.last_decision, Some(Decision::Analyze), "at once");
}

#[test]
fn a_frame_may_be_held() {
    let mut bench = Bench::new("face dx=0.01", Tuning::default());
    let seen = bench.next().expect("no failure");
    let held = bench.hold();
    assert_eq!(held.faces[0].face.origin, Origin::Held);
    assert_eq!(held.faces[0].face.bbox, seen.faces[0].face.bbox);
    assert_eq!(held.faces[0].id, 1);
    let next = bench.next().expect("no failure");
    assert_eq!(next.faces[0].face.origin, Origin::Tracked);

    let mut bench = Bench::new("face", Tuning::default());
    let first = bench.hold();
    assert_eq!(first.status, FrameStatus::Skipped);
    assert!(first.faces.is_empty());
    assert_eq!(bench.analyzer.profile().frames(), 1, "it counts");
}

#[test]
fn blendshapes_are_measured_every_nth_frame_of_a_face() {
    let tuning = Tuning {
        blendshape_interval: 3,
        ..Tuning::default()
    };
    let mut bench = Bench::new("face; landmarks", tuning);
    let jaws: Vec<_> = bench.reports(7).iter().map(jaw).collect();
    assert!(jaws[0] > 0.0, "the first frame is measured");
    assert_eq!(jaws[0], jaws[1]);
    assert_eq!(jaws[0], jaws[2]);
    assert_ne!(jaws[2], jaws[3]);
    assert_eq!(jaws[3], jaws[5]);
    assert_ne!(jaws[5], jaws[6]);
    bench.analyzer.reset();
    let after = jaw(&bench.next().expect("no failure"));
    assert_ne!(jaws[6], after, "a reset forgets them");
}

#[test]
fn blendshapes_are_never_measured_at_an_interval_of_0() {
    let tuning = Tuning {
        blendshape_interval: 0,
        ..Tuning::default()
    };
    for report in Bench::new("face; landmarks", tuning).reports(3) {
        let face = &report.faces[0].face;
        assert!(face.pose.is_some(), "the rest is measured");
        assert_eq!(face.blendshapes, None);
    }
}

#[test]
fn rest_values_are_subtracted_once_from_each_measurement() {
    let tuning = Tuning {
        neutral: NeutralSettings {
            time: 0.2,
            ..NeutralSettings::default()
        },
        blendshape_interval: 2,
        ..Tuning::default()
    };
    let script = "face dx=0.01; landmarks";
    let plain = Tuning {
        blendshape_interval: 2,
        ..Tuning::default()
    };
    // Every second frame is held, and every second analysed frame repeats the blendshapes.
    let raw = Bench::new(script, plain).every(2).reports(24);
    let corrected = Bench::new(script, tuning).every(2).reports(24);
    // Measurements are 0.16 s apart: the first is at 0, the third at 0.32 s.
    let rest = jaw(&raw[4]);
    for (number, (raw, corrected)) in std::iter::zip(&raw, &corrected).enumerate() {
        let blendshapes = corrected.faces[0].face.blendshapes.as_ref();
        let before = blendshapes.and_then(|blendshapes| Some(blendshapes.raw()?.to_vec()));
        if number < 8 {
            assert_eq!((jaw(corrected), before), (jaw(raw), None), "{number}");
            continue;
        }
        let want = ((jaw(raw) - rest) / (1.0 - rest)).max(0.0);
        assert!((jaw(corrected) - want).abs() < 1e-6, "{number}");
        let measured = raw.faces[0].face.blendshapes.as_ref();
        assert_eq!(before.as_deref(), measured.map(Blendshapes::values));
    }
}

#[test]
fn rest_values_are_kept_until_the_stream_ends() {
    let tuning = Tuning {
        neutral: NeutralSettings {
            time: 0.1,
            ..NeutralSettings::default()
        },
        ..Tuning::default()
    };
    let mut bench = Bench::new("face; landmarks", tuning);
    let is_corrected = |report: &FrameReport| {
        let blendshapes = report.faces[0].face.blendshapes.as_ref();
        blendshapes.is_some_and(|blendshapes| blendshapes.raw().is_some())
    };
    let corrected = |bench: &mut Bench| {
        bench
            .reports(5)
            .iter()
            .map(is_corrected)
            .collect::<Vec<_>>()
    };
    let late = [false, false, false, true, true];
    assert_eq!(corrected(&mut bench), late);
    bench.analyzer.reset();
    assert_eq!(corrected(&mut bench), [true; 5], "it has another id");
    bench.analyzer.restart();
    assert_eq!(corrected(&mut bench), late);
    assert_eq!(bench.analyzer.neutral.common(), None);
}

#[test]
fn smoothing_is_per_face_and_moves_the_box() {
    let script = "face x=0.2 dx=0.02; face x=0.8 y=0.4 dx=-0.02; landmarks";
    let smoothed = Tuning {
        smoothing: Some(OneEuro {
            beta: 0.0,
            ..OneEuro::default()
        }),
        ..Tuning::default()
    };
    let raw = Bench::new(script, Tuning::default()).reports(5);
    let smooth = Bench::new(script, smoothed).reports(5);
    assert_eq!(raw[0].faces, smooth[0].faces, "the first sight passes");
    let lag = |face: usize| {
        smooth[4].faces[face].face.bbox.center().x - raw[4].faces[face].face.bbox.center().x
    };
    assert!(lag(0) < -1.0 && lag(1) > 1.0, "{} {}", lag(0), lag(1));
    let face = &smooth[4].faces[0].face;
    assert_eq!(face.landmarks.as_ref().map(|l| l.extent()), Some(face.bbox));
}

#[test]
fn smoothing_starts_over_when_a_face_was_away() {
    let script = "face x=0.5 to=2; face x=0.55 from=4; landmarks";
    let smoothed = Tuning {
        smoothing: Some(OneEuro::default()),
        ..Tuning::default()
    };
    let raw = Bench::new(script, Tuning::default()).reports(4);
    let smooth = Bench::new(script, smoothed).reports(4);
    assert_eq!(ids(&smooth), [vec![1], vec![1], vec![], vec![1]]);
    let bbox = |reports: &[FrameReport]| reports[3].faces[0].face.bbox;
    assert_eq!(bbox(&raw), bbox(&smooth));
}

#[test]
fn a_failed_frame_does_not_stop_the_next() {
    let mut bench = Bench::new("face; fail at=2", Tuning::default()).every(2);
    bench.reports(2);
    assert!(bench.next().is_err());
    let report = bench.next().expect("analysed at once");
    assert_ne!(report.faces[0].face.origin, Origin::Held);
    assert_eq!(report.faces[0].id, 1);
}

#[test]
fn every_frame_is_counted() {
    let mut bench = Bench::new("face from=3", Tuning::default());
    bench.reports(4);
    let summary = bench.analyzer.profile().summary();
    assert!(summary.iter().all(|stage| stage.count == 4), "{summary:?}");
}

#[test]
fn reports_say_where_the_engine_runs_from_the_frame_on_in_which_it_left_the_gpu() {
    let mut bench = Bench::new("face; reduce at=2; fall-back at=3", Tuning::default());
    let source = Arc::make_mut(&mut bench.analyzer.source);
    source.device = "cuda:0".to_owned();
    source.models = vec![ModelFile {
        name: "half.onnx".to_owned(),
        sha256: String::new(),
    }];
    let reports = bench.reports(4);
    let devices: Vec<_> = reports.iter().map(|r| r.source.device.as_str()).collect();
    assert_eq!(devices, ["cuda:0", "cuda:0", "cpu", "cpu"]);
    assert_eq!(ids(&reports), [[1], [1], [1], [1]], "no frame is lost");
    let source = &reports[2].source;
    assert_eq!(source.execution_provider, "CPUExecutionProvider");
    assert_eq!(source.models, bench.analyzer.engine.info.models);
    assert_ne!(source.models, reports[1].source.models);
    let reason = "the GPU failed, continuing on the CPU: the script says fall-back at=3";
    assert_eq!(source.device_reason, reason);
    let notices = bench.analyzer.take_notices();
    assert!(
        matches!(
            notices.as_slice(),
            [
                Notice::DetectionSizeReduced { .. },
                Notice::FellBackToCpu { .. }
            ]
        ),
        "{notices:?}"
    );
    assert_eq!(bench.analyzer.take_notices(), [], "each is told once");
}

#[test]
fn messages_of_an_engine_that_loads_or_fails_are_reported() {
    let mut bench = Bench::new("reduce at=0", Tuning::default());
    assert_eq!(bench.analyzer.take_notices().len(), 1);
    bench = Bench::new("fall-back at=1; fail at=1", Tuning::default());
    assert!(bench.next().is_err());
    assert_eq!(bench.analyzer.take_notices().len(), 1);
}

#[test]
fn frames_that_are_found_ahead_are_completed_as_one_by_one() {
    let script = "face dx=0.01; face from=3 to=5 x=0.8; landmarks; fall-back at=6";
    let tuning = Tuning {
        smoothing: Some(OneEuro::default()),
        ..Tuning::default()
    };
    let want = Bench::new(script, tuning).reports(8);
    let mut ahead = Bench::new(script, tuning);
    let frames: Vec<_> = (1..=8).map(|number| ahead.frame(number)).collect();
    let found: Vec<_> = frames
        .iter()
        .map(|frame| ahead.analyzer.find(frame).expect("no failure"))
        .collect();
    let complete = |found| ahead.analyzer.complete(found).expect("no failure");
    assert_eq!(found.into_iter().map(complete).collect::<Vec<_>>(), want);
}
