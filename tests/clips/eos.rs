// SPDX-License-Identifier: MPL-2.0
//! Whole pipelines with a morphable model, where `FACETRACK_REFERENCE_DIR` names a folder with
//! recordings: `media/` with clips and pictures, `out/yunet/` with the faces that OpenCV's YuNet
//! finds in them, and `out/eos63/` with what eos-py 1.5.0 fits to dlib's landmarks of those faces.
//! dlib sees landmarks elsewhere than MediaPipe's mesh does: what follows from them is near, not
//! the same.

use crate::common::eos;
use crate::common::recording;
use crate::common::yunet;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

use crate::common::player::{Player, folder, track};
use facetrack::engine::EngineKind;
use facetrack::engine::jaw::Jaw;
use facetrack::geometry::Rect;
use facetrack::morphable;
use facetrack::observation::{
    FitFailure, HeadPose, Landmark, LandmarkScheme, MorphableFit, Observation,
};
use facetrack::report::FrameReport;
use recording::{Recording, angle, correlation, mean, p95};

const KIND: EngineKind = EngineKind::Eos;

/// The element's properties that choose it.
const RUNNING: &str = "engine=eos";
const PER_FRAME: &str = "engine=eos identity=per-frame";

/// Minimum overlap of boxes of the same face.
const LEAST_IOU: f32 = 0.5;

/// Minimum share of YuNet's faces that are found, and of the found faces that are fitted.
const LEAST_RECALL: f32 = 0.99;

/// Maximum mean difference of angles from MediaPipe's, degrees: its canonical face looks 2° higher
/// than eos' mean face, and its camera, which sees in perspective, shows a face off the image's
/// centre as a turned one.
const MEDIAPIPE: f32 = 8.0;

fn clip(folder: &Path, name: &str) -> std::path::PathBuf {
    folder.join(format!("media/{name}.mp4"))
}

/// The reports for each frame of a clip, which several tests look at.
fn track_clip(folder: &Path, name: &'static str, properties: &'static str) -> Arc<[FrameReport]> {
    type Tracked = Arc<OnceLock<Arc<[FrameReport]>>>;
    static CLIPS: Mutex<BTreeMap<(&str, &str), Tracked>> = Mutex::new(BTreeMap::new());
    let mut clips = CLIPS.lock().expect("no test panics here");
    let tracked = clips.entry((name, properties)).or_default().clone();
    drop(clips);
    let reports = tracked.get_or_init(|| track(&clip(folder, name), properties).into());
    reports.clone()
}

fn fit(face: &Observation) -> Option<&MorphableFit> {
    face.morphable
        .as_ref()
        .expect("a fit was tried")
        .as_ref()
        .ok()
}

/// The face at `place`, by the overlap of the boxes that `extent` returns.
fn nearest(
    report: &FrameReport,
    place: Rect,
    extent: impl Fn(&Observation) -> Rect,
) -> Option<&Observation> {
    let overlap = |face: &Observation| extent(face).iou(&place);
    let faces = report.faces.iter().map(|seen| &seen.face);
    faces
        .max_by(|a, b| overlap(a).total_cmp(&overlap(b)))
        .filter(|face| overlap(face) >= LEAST_IOU)
}

fn extent_of_landmarks(face: &Observation) -> Rect {
    let landmarks = face.landmarks.as_ref();
    landmarks.map_or_else(Rect::default, |landmarks| landmarks.extent())
}

/// A face has all that a fit tells, or the reason why there is none.
fn assert_whole(face: &Observation) {
    let landmarks = face.landmarks.as_ref().map(|landmarks| landmarks.scheme);
    let Some(fit) = fit(face) else {
        assert_eq!(face.pose, None);
        assert_ne!(face.morphable, Some(Err(FitFailure::NotFinite)));
        return;
    };
    assert_eq!(landmarks, Some(LandmarkScheme::Ibug68));
    assert_eq!((fit.shape.len(), fit.expression.len()), (63, 6));
    assert!(fit.expression.iter().all(|value| *value >= 0.0));
    assert!(fit.contour.len() >= 8, "one side of the outline");
    assert_eq!(fit.mesh, None);
    let norm: f32 = fit.rotation.iter().map(|value| value * value).sum();
    assert!((norm - 1.0).abs() < 1e-3, "{:?}", fit.rotation);
    let pose = face.pose.expect("a pose");
    assert!(pose.euler_degrees().yaw.is_finite());
    let jaw = face.blendshapes.as_ref().and_then(|b| b.get("jawOpen"));
    assert!(jaw.is_some_and(|open| (0.0..=1.0).contains(&open)));
}

#[test]
fn yunets_faces_are_fitted() {
    let Some(folder) = folder(KIND) else {
        return;
    };
    for name in ["pyfeat_single_face", "synth_gap", "synth_two_faces"] {
        let recording: Recording<yunet::Found> = recording::read(&folder, "yunet", name);
        let reports = track_clip(&folder, name, RUNNING);
        assert_eq!(reports.len(), recording.frames.len(), "{name}");
        let (mut recorded, mut found, mut fitted) = (0, 0, 0);
        for (frame, report) in recording.frames.iter().zip(reports.iter()) {
            assert!(!frame.faces.is_empty() || report.faces.is_empty(), "{name}");
            report
                .faces
                .iter()
                .for_each(|seen| assert_whole(&seen.face));
            for face in &frame.faces {
                recorded += 1;
                let Some(ours) = nearest(report, face.rect(), |face| face.bbox) else {
                    continue;
                };
                found += 1;
                fitted += usize::from(fit(ours).is_some());
            }
        }
        eprintln!("{name}: {found} of {recorded} faces found, {fitted} fitted");
        assert!(recorded > 0);
        assert!(found as f32 >= LEAST_RECALL * recorded as f32, "{name}");
        assert!(fitted as f32 >= LEAST_RECALL * found as f32, "{name}");
    }
}

/// Differences between fits and the fits to dlib's landmarks.
#[derive(Default)]
struct Differences {
    recorded: usize,
    landmarks: Vec<f32>,
    turns: Vec<f32>,
    /// `jawOpen`, ours and by dlib's landmarks.
    jaws: Vec<(f32, f32)>,
}

/// Bars of the means. eos-py itself, given the mesh's landmarks of 25 faces of each clip and of the
/// pictures, is as far away: by 0.013, 0.021 and 0.035 of the distance of the eyes, and by 2.5°,
/// 4.0° and 5.9°.
struct Bars {
    landmarks: f32,
    turns: f32,
}

impl Differences {
    fn add(&mut self, recorded: &recording::Frame<eos::Found>, report: &FrameReport) {
        for face in &recorded.faces {
            self.recorded += 1;
            let nearest = nearest(report, face.extent(), extent_of_landmarks);
            let Some((ours, fit)) = nearest.and_then(|ours| Some((ours, fit(ours)?))) else {
                continue;
            };
            self.landmarks.push(mean(&face.landmark_errors(ours)));
            self.turns.push(face.turn_error(fit));
            let theirs = face.input_landmarks.iter();
            let theirs = theirs.map(|[x, y]| Landmark {
                x: *x,
                y: *y,
                z: 0.0,
            });
            let theirs: Vec<_> = theirs.collect();
            let open = ours.blendshapes.as_ref().and_then(|b| b.get("jawOpen"));
            self.jaws.extend(open.zip(Jaw::IBUG_68.open(&theirs, 1.0)));
        }
    }

    fn check(&mut self, name: &str, least_recall: f32, bars: &Bars) {
        let recall = self.turns.len() as f32 / self.recorded as f32;
        let (landmarks, turns) = (mean(&self.landmarks), mean(&self.turns));
        eprintln!(
            "{name}: recall {recall:.4}, landmarks {landmarks:.5} (p95 {:.5}), turns {turns:.3}° (p95 {:.3}°)",
            p95(&mut self.landmarks),
            p95(&mut self.turns),
        );
        assert!(recall >= least_recall, "{name}: {recall}");
        assert!(landmarks <= bars.landmarks, "{name}: {landmarks}");
        assert!(turns <= bars.turns, "{name}: {turns}");
    }
}

#[test]
fn fits_in_clips_are_near_those_to_dlibs_landmarks() {
    let Some(folder) = folder(KIND) else {
        return;
    };
    for (name, landmarks, turns, least_correlation) in [
        ("pyfeat_single_face", 0.018, 3.5, 0.95),
        ("pyfeat_WolfgangLanger_Pexels", 0.028, 5.0, 0.85),
    ] {
        let original = format!("dlib68__{name}");
        let recording: Recording<eos::Found> = recording::read(&folder, "eos63", &original);
        let reports = track_clip(&folder, name, PER_FRAME);
        assert_eq!(reports.len(), recording.frames.len(), "{name}");
        let mut differences = Differences::default();
        for (recorded, report) in recording.frames.iter().zip(reports.iter()) {
            report
                .faces
                .iter()
                .for_each(|seen| assert_whole(&seen.face));
            differences.add(recorded, report);
        }
        differences.check(name, LEAST_RECALL, &Bars { landmarks, turns });
        let (ours, theirs): (Vec<_>, Vec<_>) = differences.jaws.iter().copied().unzip();
        let jaws = correlation(&ours, &theirs);
        let apart: Vec<_> = differences
            .jaws
            .iter()
            .map(|(a, b)| (a - b).abs())
            .collect();
        eprintln!(
            "{name}: jawOpen {:.4} apart, correlation {jaws:.4}",
            mean(&apart)
        );
        assert!(jaws >= least_correlation, "{name}: {jaws}");
    }
}

#[test]
fn fits_in_pictures_are_near_those_to_dlibs_landmarks() {
    let Some(folder) = folder(KIND) else {
        return;
    };
    let mut differences = Differences::default();
    let recording: Recording<eos::Found> = recording::read(&folder, "eos63", "dlib68__IMAGES");
    for picture in &recording.frames {
        let reports = track(&folder.join("media").join(&picture.image), PER_FRAME);
        assert_eq!(reports.len(), 1, "{}", picture.image);
        differences.add(picture, &reports[0]);
    }
    let bars = Bars {
        landmarks: 0.035,
        turns: 6.5,
    };
    differences.check("pictures", 0.95, &bars);
}

/// The head's pose in the conventions of every engine, against another engine's.
#[test]
fn heads_turn_as_mediapipe_sees_them_turn() {
    let Some(folder) = folder(KIND) else {
        return;
    };
    for name in ["pyfeat_single_face", "pyfeat_WolfgangLanger_Pexels"] {
        let recording: Recording = recording::read(&folder, "mp0.10.21_tasks_image", name);
        let reports = track_clip(&folder, name, RUNNING);
        let mut differences = [vec![], vec![], vec![]];
        for (recorded, report) in recording.frames.iter().zip(reports.iter()) {
            let ours = report.faces.first().and_then(|seen| seen.face.pose);
            let (Some(ours), [theirs]) = (ours, recorded.faces.as_slice()) else {
                continue;
            };
            let theirs = HeadPose {
                matrix: theirs.matrix,
            };
            let (ours, theirs) = (ours.euler_degrees(), theirs.euler_degrees());
            differences[0].push(ours.yaw - theirs.yaw);
            differences[1].push(ours.pitch - theirs.pitch);
            differences[2].push(ours.roll - theirs.roll);
        }
        let apart = differences.each_ref().map(|angles| {
            let angles: Vec<_> = angles.iter().map(|angle| angle.abs()).collect();
            mean(&angles)
        });
        let shift = differences.map(|angles| mean(&angles));
        eprintln!(
            "{name}: yaw, pitch, roll {apart:.2?}° from MediaPipe's, on the whole {shift:.2?}°"
        );
        assert!(apart.into_iter().fold(0.0, f32::max) <= MEDIAPIPE, "{name}");
    }
}

/// The shapes of each identity, frame by frame.
fn shapes(reports: &[FrameReport]) -> BTreeMap<u32, Vec<Vec<f32>>> {
    let mut shapes = BTreeMap::<_, Vec<_>>::new();
    for face in reports.iter().flat_map(|report| &report.faces) {
        let fit = fit(&face.face).expect("a fit");
        shapes.entry(face.id).or_default().push(fit.shape.clone());
    }
    shapes
}

fn distance(a: &[f32], b: &[f32]) -> f32 {
    let squares = a.iter().zip(b).map(|(a, b)| (a - b).powi(2));
    squares.sum::<f32>().sqrt()
}

/// Change of a shape from frame to frame in the second half.
fn unrest(shapes: &[Vec<f32>]) -> f32 {
    let late = &shapes[shapes.len() / 2..];
    let steps: Vec<_> = late
        .windows(2)
        .map(|pair| distance(&pair[0], &pair[1]))
        .collect();
    mean(&steps)
}

#[test]
fn a_shape_comes_to_rest_and_the_rest_follows_the_face() {
    let Some(folder) = folder(KIND) else {
        return;
    };
    let [running, per_frame] = [RUNNING, PER_FRAME]
        .map(|properties| track_clip(&folder, "pyfeat_single_face", properties));
    let [calm, restless] = [&running, &per_frame].map(|reports| {
        let shapes = shapes(reports);
        assert_eq!(shapes.len(), 1, "one face");
        unrest(&shapes[&1])
    });
    eprintln!("from frame to frame shapes move by {calm:.4}, each by itself by {restless:.4}");
    assert!(calm < restless / 5.0, "{calm} {restless}");

    let faces = |reports: &[FrameReport]| -> Vec<Observation> {
        let faces = reports.iter().flat_map(|report| &report.faces);
        faces.map(|seen| seen.face.clone()).collect()
    };
    let (mut turns, mut residuals) = (vec![], vec![]);
    for (ours, alone) in faces(&running).iter().zip(&faces(&per_frame)) {
        let (ours, alone) = (fit(ours).expect("a fit"), fit(alone).expect("a fit"));
        turns.push(angle(ours.rotation, alone.rotation));
        residuals.push(ours.residual / alone.residual);
    }
    let (turns, residuals) = (mean(&turns), mean(&residuals));
    eprintln!(
        "turns {turns:.3}° apart, residuals {residuals:.3} times the residuals of single frames"
    );
    assert!(turns < 3.0, "{turns}");
    assert!(residuals < 1.1, "{residuals}");
}

#[test]
fn two_faces_have_shapes_of_their_own() {
    let Some(folder) = folder(KIND) else {
        return;
    };
    let player = Player::new(&clip(&folder, "synth_two_faces"), RUNNING);
    let shapes = shapes(&player.reports(60));
    assert_eq!(shapes.len(), 2, "two faces");
    let last = |id: u32| shapes[&id].last().expect("a shape");
    let apart = distance(last(1), last(2));
    for (id, shapes) in &shapes {
        let moved = unrest(shapes);
        assert!(moved < apart / 10.0, "{id}: {moved} {apart}");
    }
}

#[test]
fn the_same_frames_yield_the_same() {
    let Some(folder) = folder(KIND) else {
        return;
    };
    const FRAMES: usize = 25;
    let clip = clip(&folder, "pyfeat_single_face");
    for properties in [RUNNING, PER_FRAME] {
        let player = Player::new(&clip, properties);
        let once = player.reports(FRAMES);
        let faces = |reports: &[FrameReport]| -> Vec<_> {
            reports.iter().map(|report| report.faces.clone()).collect()
        };
        let twice = Player::new(&clip, properties).reports(FRAMES);
        assert_eq!(faces(&once), faces(&twice));
        player.rewind();
        let again = player.reports(FRAMES);
        for (again, once) in again.iter().zip(&once) {
            assert_eq!(again.faces.len(), 1);
            assert_eq!(again.faces[0].face, once.faces[0].face, "a jump forgets");
            assert_ne!(again.faces[0].id, once.faces[0].id);
        }
    }
}

#[test]
fn a_mesh_holds_the_landmarks() {
    let Some(folder) = folder(KIND) else {
        return;
    };
    let (model, _) = morphable::load(None, &crate::common::engine::installed_paths())
        .expect("the engine has it");
    let player = Player::new(
        &clip(&folder, "pyfeat_single_face"),
        &format!("{RUNNING} mesh=true"),
    );
    for report in player.reports(5) {
        let face = &report.faces[0].face;
        let mesh = fit(face).and_then(|fit| fit.mesh.clone()).expect("a mesh");
        assert_eq!(mesh.len(), 3448);
        let landmarks = &face.landmarks.as_ref().expect("landmarks").points;
        for (landmark, vertex) in &model.mapping().vertices {
            let (a, b) = (landmarks[*landmark], mesh[*vertex]);
            let apart = [a.x - b.x, a.y - b.y, a.z - b.z];
            assert!(
                apart.iter().all(|d| d.abs() < 0.01),
                "{landmark}: {apart:?}"
            );
        }
        let nose = mesh[114].z;
        let ears = mesh.iter().map(|vertex| vertex.z).fold(0.0, f32::max);
        assert!(
            nose < 0.0 && ears > 0.0,
            "the nose is nearer: {nose} {ears}"
        );
    }
}

#[test]
fn frames_in_between_repeat_a_fit() {
    let Some(folder) = folder(KIND) else {
        return;
    };
    let clip = clip(&folder, "pyfeat_single_face");
    let held = Player::new(&clip, &format!("{PER_FRAME} inference-interval=3")).reports(9);
    let each = Player::new(&clip, PER_FRAME).reports(9);
    for (index, report) in held.iter().enumerate() {
        let (ours, source) = (
            &report.faces[0].face,
            &each[index - index % 3].faces[0].face,
        );
        assert_eq!(ours.morphable, source.morphable, "frame {index}");
        assert_eq!(ours.landmarks, source.landmarks, "frame {index}");
        assert_eq!(ours.pose, source.pose, "frame {index}");
    }
    let thinned = Player::new(&clip, &format!("{PER_FRAME} blendshape-interval=3")).reports(9);
    for (index, report) in thinned.iter().enumerate() {
        let (ours, source) = (
            &report.faces[0].face,
            &each[index - index % 3].faces[0].face,
        );
        assert_eq!(ours.blendshapes, source.blendshapes, "frame {index}");
        assert_eq!(ours.morphable, each[index].faces[0].face.morphable);
    }
}

#[test]
fn no_face_is_seen_where_there_is_none() {
    let Some(folder) = folder(KIND) else {
        return;
    };
    let reports = track(&clip(&folder, "pyfeat_no_face"), RUNNING);
    assert!(!reports.is_empty());
    assert!(reports.iter().all(|report| report.faces.is_empty()));
}
