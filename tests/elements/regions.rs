// SPDX-License-Identifier: MPL-2.0
//! The regions of interest, read as Intel's DL Streamer reads them: each parameter structure is a
//! tensor, and its fields have to be of the very types that `gva_tensor_meta.h`, `tensor.h` and
//! `gstgva` ask for.

use crate::common;

use crate::common::faces::{face, full_face, recognised_face};
use crate::common::reports::{report, with_report};
use facetrack::blendshape::MEDIAPIPE_CHANNELS;
use facetrack::geometry::Rect;
use facetrack::report::{FrameReport, TrackedFace};
use gst::glib;
use gst_check::Harness;
use gst_video::VideoRegionOfInterestMeta;

/// Points go through whole pixels of the region and 32-bit floats.
const PIXELS: f32 = 1e-3;

/// `GVA::RegionOfInterest`, of only the buffer's metadata.
struct Region {
    label: String,
    /// x, y, width, height.
    rect: [f32; 4],
    tensors: Vec<Tensor>,
}

impl Region {
    fn all(buffer: &gst::BufferRef) -> Vec<Self> {
        let regions = buffer.iter_meta::<VideoRegionOfInterestMeta>();
        regions.map(|region| Self::read(&region)).collect()
    }

    fn read(region: &VideoRegionOfInterestMeta) -> Self {
        let (x, y, width, height) = region.rect();
        Self {
            label: region.roi_type().to_owned(),
            rect: [x, y, width, height].map(|side| side as f32),
            tensors: region
                .params()
                .map(|structure| Tensor(structure.to_owned()))
                .collect(),
        }
    }

    fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.tensors.iter().find(|tensor| tensor.0.name() == name)
    }

    fn names(&self) -> Vec<&str> {
        let names = self.tensors.iter().map(|tensor| tensor.0.name().as_str());
        names.collect()
    }

    fn detection(&self) -> &Tensor {
        self.tensor("detection").expect("a detection")
    }

    fn object_id(&self) -> Option<i32> {
        self.tensor("object_id")?.int("id")
    }

    /// x, y, width, height, in parts of the frame.
    fn normalized_rect(&self) -> [f64; 4] {
        let [x_min, x_max, y_min, y_max] = ["x_min", "x_max", "y_min", "y_max"]
            .map(|side| self.detection().double(side).expect("a side"));
        [x_min, y_min, x_max - x_min, y_max - y_min]
    }

    /// Points where `gvawatermark` draws them.
    fn points(&self, name: &str) -> Vec<[f32; 2]> {
        let tensor = self.tensor(name).expect("points");
        assert_eq!(tensor.string("format").as_deref(), Some("landmark_points"));
        let [x, y, width, height] = self.rect;
        let data = tensor.data();
        let (points, []) = data.as_chunks::<2>() else {
            panic!("{name} has half a point");
        };
        let place = |[px, py]: &[f32; 2]| [x + width * px, y + height * py];
        points.iter().map(place).collect()
    }
}

/// `GVA::Tensor`.
struct Tensor(gst::Structure);

impl Tensor {
    fn double(&self, name: &str) -> Option<f64> {
        self.0.get(name).ok()
    }

    fn int(&self, name: &str) -> Option<i32> {
        self.0.get(name).ok()
    }

    fn string(&self, name: &str) -> Option<String> {
        self.0.get(name).ok()
    }

    /// The bytes as what `precision` says: 10 is `GVA_PRECISION_FP32`.
    fn data(&self) -> Vec<f32> {
        assert_eq!(self.int("precision"), Some(10));
        let buffer: glib::Variant = self.0.get("data_buffer").expect("data");
        let bytes = buffer.fixed_array::<u8>().expect("of bytes");
        let (floats, rest) = bytes.as_chunks::<4>();
        assert!(rest.is_empty());
        let dims: gst::Array = self.0.get("dims").expect("dimensions");
        let dims = dims
            .iter()
            .map(|side| side.get::<u32>().expect("an unsigned number"));
        assert_eq!(dims.product::<u32>() as usize, floats.len());
        floats.iter().copied().map(f32::from_le_bytes).collect()
    }
}

/// The regions of a report on a frame of 1280×720, after `elements`.
fn regions_after(elements: &str, report: &FrameReport) -> Vec<Region> {
    common::init();
    let mut harness = Harness::new_parse(elements);
    harness.set_src_caps_str("video/x-raw,format=GRAY8,width=1280,height=720,framerate=25/1");
    let buffer = gst::Buffer::with_size(1280 * 720).expect("room");
    harness.push(with_report(buffer, report)).expect("it flows");
    Region::all(&harness.pull().expect("a frame comes out"))
}

fn regions(faces: Vec<TrackedFace>) -> Vec<Region> {
    regions_after("identity", &report(faces))
}

#[track_caller]
fn assert_near(actual: &[[f32; 2]], expected: impl Iterator<Item = [f32; 2]>, tolerance: f32) {
    let expected: Vec<_> = expected.collect();
    assert_eq!(actual.len(), expected.len());
    for (actual, expected) in std::iter::zip(actual, &expected) {
        for (a, e) in std::iter::zip(actual, expected) {
            assert!((a - e).abs() <= tolerance, "{actual:?} for {expected:?}");
        }
    }
}

#[test]
fn a_face_is_a_detection_with_a_track() {
    let [first, second] = &regions(vec![full_face(4, 300.25), face(7, -20.5)])[..] else {
        panic!("other than two");
    };
    assert_eq!(
        [&first.label, &second.label].map(String::as_str),
        ["face"; 2]
    );
    assert_eq!([first, second].map(Region::object_id), [Some(4), Some(7)]);
    let confidence = |region: &Region| region.detection().double("confidence");
    assert_eq!(confidence(first), Some(f64::from(0.987_65f32)));
    assert_eq!(confidence(second), None);
    assert_eq!(first.detection().int("label_id"), Some(0));
    assert_eq!(first.rect, [300.0, 120.0, 81.0, 98.0]);
    let expected = [
        300.25 / 1280.0,
        120.5 / 720.0,
        80.25 / 1280.0,
        96.75 / 720.0,
    ];
    for (a, e) in std::iter::zip(first.normalized_rect(), expected) {
        assert!((a - e).abs() < 1e-6, "{a} for {e}");
    }
    // Cut at the frame's edge.
    assert_eq!(second.rect[0], 0.0);
    assert_eq!(second.normalized_rect()[0], 0.0);
    assert_eq!(second.names(), ["detection", "object_id"]);
}

#[test]
fn points_are_where_they_were_measured() {
    let sent = full_face(1, 300.25);
    let region = &regions(vec![sent.clone()])[0];
    let landmarks = sent.face.landmarks.expect("some").points;
    let landmarks = landmarks.iter().map(|p| [p.x, p.y]);
    assert_near(&region.points("mediapipe-478"), landmarks, PIXELS);
    let key_points = sent.face.key_points.iter().map(|p| [p.x, p.y]);
    assert_near(&region.points("key_points"), key_points, PIXELS);
    // A face is turned upright by the first points that there are, and five of them are asked for.
    let region = &regions(vec![recognised_face(1, 300.25)])[0];
    let first = region
        .tensors
        .iter()
        .find(|tensor| tensor.0.has_field("format"));
    assert_eq!(first.expect("points").data().len(), 10);
}

/// Scaling is GStreamer's own affair: it keeps a region's box and number, and nothing else.
#[test]
fn copies_keep_what_scaling_drops() {
    let sent = report(vec![full_face(4, 300.875)]);
    for elements in ["queue", "tee ! queue"] {
        let region = &regions_after(elements, &sent)[0];
        assert_eq!(region.object_id(), Some(4), "{elements}");
        assert_eq!(region.points("mediapipe-478").len(), 478, "{elements}");
    }
    let elements = "videoscale ! capsfilter caps=video/x-raw,width=640,height=360 ! identity";
    let region = &regions_after(elements, &sent)[0];
    assert_eq!(region.rect, [150.0, 60.0, 41.0, 49.0]);
    assert!(region.tensors.is_empty());
}

#[test]
fn results_have_names_and_words() {
    let region = &regions(vec![full_face(1, 300.25)])[0];
    let blendshapes = region.tensor("blendshapes").expect("some");
    let names = blendshapes.string("names").expect("of the channels");
    assert!(names.split(',').eq(MEDIAPIPE_CHANNELS));
    let values: Vec<_> = (0..52).map(|i| i as f32 / 64.0).collect();
    assert_eq!(blendshapes.data(), values);
    let label = |name: &str| region.tensor(name).and_then(|it| it.string("label"));
    assert_eq!(label("age").as_deref(), Some("30"));
    assert_eq!(label("gender").as_deref(), Some("female"));
    for tensor in &region.tensors[2..] {
        assert_eq!(tensor.string("model_name").as_deref(), Some("handmade"));
    }
}

/// No computation divides by 0.
#[test]
fn faces_out_of_sight_have_finite_regions() {
    for bbox in [
        Rect::new(-500.0, 2000.0, 10.0, 10.0),
        Rect::new(3.0, 3.0, 0.0, 0.0),
        Rect::new(-1e9, -1e9, 2e9, 2e9),
    ] {
        let mut tracked = full_face(u32::MAX, 300.25);
        tracked.face.bbox = bbox;
        let region = &regions(vec![tracked])[0];
        assert_eq!(region.object_id(), Some(i32::MAX));
        let inside = |part: f64| (0.0..=1.0).contains(&part);
        assert!(region.normalized_rect().into_iter().all(inside), "{bbox:?}");
        let points = region.points("mediapipe-478");
        assert!(points.as_flattened().iter().all(|at| at.is_finite()));
    }
    let mut tracked = full_face(1, 300.25);
    tracked.face.bbox = Rect::new(f32::NAN, f32::NAN, f32::NAN, f32::NAN);
    assert_eq!(regions(vec![tracked])[0].rect, [0.0; 4]);
}
