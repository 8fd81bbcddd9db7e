// SPDX-License-Identifier: MPL-2.0

use std::sync::Arc;

use strum::VariantArray;

use super::*;
use crate::blendshape::Blendshapes;
use crate::geometry::{Point, Rect};
use crate::image::{ColorMatrix, ColorModel, ColorRange, Colorimetry, Component, Layout, Word};
use crate::observation::{
    Gaze, HeadPose, Landmark, LandmarkScheme, Landmarks, Observation, Origin, Pupil,
};
use crate::report::{FrameStatus, ReportSource, SearchExtent, TrackedFace};

const STYLE: Style = Style {
    layers: Layers::BOXES,
    color: None,
    line_width: 0.05,
    text_size: 0.1,
    blendshapes: 5,
};

const BACKGROUND: Rgb = Rgb([40, 120, 200]);

/// A frame's bytes.
#[derive(Debug, Clone, PartialEq)]
struct Picture {
    size: (usize, usize),
    layout: Layout,
    colorimetry: Colorimetry,
    planes: Vec<(Vec<u8>, usize)>,
}

impl Picture {
    /// One of a single color, with rows that are `padding` bytes longer than they need to be.
    fn new(size: (usize, usize), layout: Layout, colorimetry: Colorimetry, padding: usize) -> Self {
        let mut picture = Self {
            size,
            layout: layout.clone(),
            colorimetry,
            planes: Vec::new(),
        };
        let count = layout.components.iter().map(|c| c.plane + 1).max();
        for plane in 0..count.expect("components") {
            let mut components = layout.components.iter().filter(|c| c.plane == plane);
            let component = components.next().expect("a component of each plane");
            let [across, down] = component.subsampling;
            let stride = (size.0.div_ceil(1 << across) + 1) * component.step.max(4) + padding;
            let rows = size.1.div_ceil(1 << down);
            picture.planes.push((vec![0; stride * rows], stride));
        }
        let [mut whole, mut over] = [Mask::default(), Mask::default()];
        whole.resize(size.0, size.1).unwrap();
        over.resize(size.0, size.1).unwrap();
        whole.fill(Rect::new(0.0, 0.0, size.0 as f32, size.1 as f32));
        picture.canvas(|canvas| canvas.paint(&whole, &mut over, BACKGROUND, 255));
        picture
    }

    fn rgb(size: (usize, usize)) -> Self {
        Self::new(size, packed(ColorModel::Rgb, 3, &[0, 1, 2]), FULL, 0)
    }

    fn canvas(&mut self, draw: impl FnOnce(&mut Canvas)) {
        let planes = self.planes.iter_mut().map(|(data, stride)| PlaneMut {
            data,
            stride: *stride,
        });
        let canvas = Canvas::new(self.size, &self.layout, self.colorimetry, planes.collect());
        draw(&mut canvas.expect("planes that are large enough"));
    }

    fn draw(&mut self, report: &FrameReport, style: &Style) {
        let pace = Pace {
            fps: Some(29.97),
            latency: Some(Duration::from_millis(40)),
            ..Pace::default()
        };
        self.canvas(|canvas| {
            Overlay::default()
                .draw(canvas, report, &pace, style)
                .unwrap()
        });
    }

    /// The number of a component that stands for a pixel.
    fn code(&self, index: usize, x: usize, y: usize) -> u32 {
        let component = &self.layout.components[index];
        let (data, stride) = &self.planes[component.plane];
        let [across, down] = component.subsampling;
        let at = (y >> down) * stride + (x >> across) * component.step + component.offset;
        let word = match component.word {
            Word::Byte => u32::from(data[at]),
            Word::Le16 => u32::from(u16::from_le_bytes([data[at], data[at + 1]])),
            Word::Be16 => u32::from(u16::from_be_bytes([data[at], data[at + 1]])),
        };
        word >> component.shift & ((1 << component.depth) - 1)
    }

    fn color(&self, x: usize, y: usize) -> Rgb {
        Rgb([0, 1, 2].map(|index| self.code(index, x, y) as u8))
    }

    /// The pixels that are not the background.
    fn changed(&self) -> Vec<(usize, usize)> {
        let pixels = (0..self.size.1).flat_map(|y| (0..self.size.0).map(move |x| (x, y)));
        pixels
            .filter(|(x, y)| self.color(*x, *y) != BACKGROUND)
            .collect()
    }
}

const FULL: Colorimetry = Colorimetry {
    matrix: ColorMatrix::Bt601,
    range: ColorRange::Full,
    chroma_site: crate::image::ChromaSite {
        horizontally_cosited: false,
        vertically_cosited: false,
    },
};

/// All components in one plane.
fn packed(model: ColorModel, step: usize, offsets: &[usize]) -> Layout {
    let offsets = offsets.iter();
    Layout {
        model,
        components: offsets
            .map(|offset| Component::byte(0, *offset, step, [0, 0]))
            .collect(),
    }
}

/// Each component in a plane of its own.
fn planar(subsampling: [u32; 2]) -> Layout {
    Layout {
        model: ColorModel::Yuv,
        components: vec![
            Component::byte(0, 0, 1, [0, 0]),
            Component::byte(1, 0, 1, subsampling),
            Component::byte(2, 0, 1, subsampling),
        ],
    }
}

fn words(layout: Layout, word: Word, shift: u32, depth: u32) -> Layout {
    let widened = layout.components.iter().map(|component| Component {
        offset: component.offset * 2,
        step: component.step * 2,
        word,
        shift,
        depth,
        ..*component
    });
    Layout {
        components: widened.collect(),
        ..layout
    }
}

/// Y′CbCr formats of every kind.
fn yuv_layouts() -> Vec<(&'static str, Layout)> {
    let nv12 = Layout {
        model: ColorModel::Yuv,
        components: vec![
            Component::byte(0, 0, 1, [0, 0]),
            Component::byte(1, 0, 2, [1, 1]),
            Component::byte(1, 1, 2, [1, 1]),
        ],
    };
    let yuy2 = Layout {
        model: ColorModel::Yuv,
        components: vec![
            Component::byte(0, 0, 2, [0, 0]),
            Component::byte(0, 1, 4, [1, 0]),
            Component::byte(0, 3, 4, [1, 0]),
        ],
    };
    vec![
        ("Y444", planar([0, 0])),
        ("I420", planar([1, 1])),
        ("Y42B", planar([1, 0])),
        ("Y41B", planar([2, 0])),
        ("YUV9", planar([2, 2])),
        ("P010_10LE", words(nv12.clone(), Word::Le16, 6, 10)),
        ("NV12", nv12),
        ("YUY2", yuy2),
        ("I420_10BE", words(planar([1, 1]), Word::Be16, 0, 10)),
        ("AYUV", packed(ColorModel::Yuv, 4, &[1, 2, 3, 0])),
    ]
}

fn report(faces: Vec<Observation>) -> FrameReport {
    let faces = faces.into_iter().zip(1..);
    FrameReport {
        width: 160,
        height: 120,
        status: FrameStatus::Tracked,
        cut: false,
        search: SearchExtent::Whole,
        repeated: false,
        faces: faces.map(|(face, id)| TrackedFace { id, face }).collect(),
        source: Arc::new(ReportSource {
            engine: "an engine".to_owned(),
            device: "cpu".to_owned(),
            ..ReportSource::default()
        }),
    }
}

fn boxed(x: f32, y: f32, width: f32, height: f32) -> Observation {
    Observation::from_bbox(Rect::new(x, y, width, height))
}

/// A face with everything that is drawn, its landmarks in rows.
fn full(scheme: LandmarkScheme) -> Observation {
    let points = (0..scheme.count()).map(|i| Landmark {
        x: 42.0 + (i % 20) as f32 * 2.5,
        y: 32.0 + (i / 20) as f32 * 2.0,
        z: 0.0,
    });
    let names: Vec<_> = ["_neutral", "browDownLeft", "jawOpen", "mouthSmileLeft"]
        .map(str::to_owned)
        .into();
    let pupil = |x| Pupil {
        position: Point::new(x, 50.0),
        confidence: 0.9,
    };
    Observation {
        confidence: Some(0.5),
        landmarks: Some(Landmarks::new(scheme, points.collect())),
        key_points: vec![Point::new(60.0, 50.0), Point::new(80.0, 50.0)],
        blendshapes: Some(Blendshapes::new(names.into(), vec![0.9, 0.25, 1.0, 0.5])),
        pose: Some(HeadPose {
            matrix: [
                [2.0, 0.0, 0.0, 0.0],
                [0.0, 2.0, 0.0, 0.0],
                [0.0, 0.0, 2.0, -40.0],
                [0.0, 0.0, 0.0, 1.0],
            ],
        }),
        gaze: Some(Gaze {
            right: pupil(60.0),
            left: pupil(80.0),
        }),
        ..boxed(40.0, 30.0, 60.0, 60.0)
    }
}

fn all() -> Style {
    Style {
        layers: Layers::all(),
        ..STYLE
    }
}

/// `share` 255ths of a color over the background.
fn over(color: Rgb, share: u32) -> Rgb {
    let mix = |a: u8, b: u8| (u32::from(a) * (255 - share) + u32::from(b) * share + 127) / 255;
    Rgb([0, 1, 2].map(|i| mix(BACKGROUND.0[i], color.0[i]) as u8))
}

#[test]
fn a_box_is_where_the_report_says() {
    let mut picture = Picture::rgb((160, 120));
    picture.draw(&report(vec![boxed(40.0, 30.0, 60.0, 60.0)]), &STYLE);
    let line = over(Rgb::of_track(1), 230);
    for (x, y) in [
        (40, 60),
        (37, 60),
        (42, 60),
        (70, 30),
        (99, 60),
        (70, 89),
        (40, 30),
    ] {
        assert_eq!(picture.color(x, y), line, "{x}, {y}");
    }
    // Lines are 6 px wide, half of that on each side.
    for (x, y) in [(36, 60), (43, 60), (70, 60), (70, 26), (103, 60), (70, 93)] {
        assert_eq!(picture.color(x, y), BACKGROUND, "{x}, {y}");
    }
}

#[test]
fn coordinates_follow_the_frames_size() {
    let mut picture = Picture::rgb((320, 60));
    picture.draw(&report(vec![boxed(40.0, 30.0, 60.0, 60.0)]), &STYLE);
    let line = over(Rgb::of_track(1), 230);
    assert_eq!(picture.color(80, 30), line);
    assert_eq!(picture.color(200, 30), line);
    assert_eq!(picture.color(140, 15), line);
    assert_eq!(picture.color(140, 30), BACKGROUND);
}

#[test]
fn faces_have_their_own_colors_unless_one_is_set() {
    let faces = vec![boxed(10.0, 40.0, 40.0, 40.0), boxed(90.0, 40.0, 40.0, 40.0)];
    let orange = Style {
        color: Some(Rgb::ORANGE),
        ..STYLE
    };
    for (style, wanted) in [
        (STYLE, [Rgb::of_track(1), Rgb::of_track(2)]),
        (orange, [Rgb::ORANGE; 2]),
    ] {
        let mut picture = Picture::rgb((160, 120));
        picture.draw(&report(faces.clone()), &style);
        let colors = [picture.color(10, 60), picture.color(90, 60)];
        assert_eq!(colors, wanted.map(|color| over(color, 230)));
    }
}

#[test]
fn a_face_that_was_not_measured_is_dashed_and_dim() {
    let face = boxed(20.0, 20.0, 120.0, 80.0);
    let count = |origin| {
        let mut picture = Picture::rgb((160, 120));
        let face = Observation {
            origin,
            ..face.clone()
        };
        let style = Style {
            line_width: 0.02,
            ..STYLE
        };
        picture.draw(&report(vec![face]), &style);
        assert_ne!(picture.color(20, 20), BACKGROUND, "corners are drawn");
        (picture.changed().len(), picture.color(20, 20))
    };
    let (detected, color) = count(Origin::Detected);
    assert_eq!(count(Origin::Tracked), (detected, color));
    let (held, dim) = count(Origin::Held);
    assert!(held * 10 < detected * 8, "{held} of {detected}");
    let distance = |color: Rgb| color.0[0].abs_diff(BACKGROUND.0[0]);
    assert!(distance(dim) < distance(color), "{dim:?} {color:?}");
}

#[test]
fn points_are_where_the_landmarks_are_and_nowhere_else() {
    for &scheme in LandmarkScheme::ALL {
        let mut picture = Picture::rgb((160, 120));
        let face = full(scheme);
        let style = Style {
            layers: Layers::POINTS,
            line_width: 0.01,
            ..STYLE
        };
        picture.draw(&report(vec![face.clone()]), &style);
        let points = face.landmarks.expect("landmarks").points;
        for point in &points {
            let color = picture.color(point.x as usize, point.y as usize);
            assert_ne!(color, BACKGROUND, "{scheme:?} {point:?}");
        }
        for (x, y) in picture.changed() {
            let near = points.iter().any(|point| {
                let (dx, dy) = (point.x - x as f32 - 0.5, point.y - y as f32 - 0.5);
                dx.hypot(dy) < 2.0
            });
            assert!(near, "{scheme:?} {x}, {y}");
        }
    }
}

#[test]
fn every_layer_draws_something_of_its_own() {
    for layers in Layers::all() {
        let mut picture = Picture::rgb((160, 120));
        let style = Style { layers, ..STYLE };
        let report = report(vec![full(LandmarkScheme::MediaPipe478)]);
        assert!(!Overlay::is_empty(&report, &style));
        picture.draw(&report, &style);
        assert!(!picture.changed().is_empty(), "{layers:?}");
    }
    let nothing = Style {
        layers: Layers::empty(),
        ..STYLE
    };
    let (with, without) = (report(vec![boxed(0.0, 0.0, 9.0, 9.0)]), report(Vec::new()));
    assert!(Overlay::is_empty(&with, &nothing));
    assert!(Overlay::is_empty(&without, &STYLE));
    assert!(!Overlay::is_empty(&without, &all()));
}

#[test]
fn only_the_mesh_of_a_mesh_is_drawn() {
    for &scheme in LandmarkScheme::ALL {
        let mut picture = Picture::rgb((160, 120));
        let style = Style {
            layers: Layers::MESH,
            ..STYLE
        };
        picture.draw(&report(vec![full(scheme)]), &style);
        let is_mesh = scheme == LandmarkScheme::MediaPipe478;
        assert_eq!(!picture.changed().is_empty(), is_mesh, "{scheme:?}");
    }
}

#[test]
fn bars_are_as_long_as_the_strongest_blendshapes() {
    let mut picture = Picture::rgb((640, 120));
    let style = Style {
        layers: Layers::BLENDSHAPES,
        color: Some(Rgb([255, 0, 0])),
        blendshapes: 2,
        ..STYLE
    };
    let face = Observation {
        bbox: Rect::new(2.0, 10.0, 20.0, 20.0),
        ..full(LandmarkScheme::Ibug68)
    };
    picture.draw(&report(vec![face]), &style);
    let is_bar = |x: usize, y: usize| picture.color(x, y) == Rgb([255, 0, 0]);
    let lengths: Vec<_> = (0..120)
        .map(|y| (0..640).filter(|x| is_bar(*x, y)).count())
        .filter(|length| *length > 0)
        .collect();
    // jawOpen has 1, mouthSmileLeft half of that; they keep the engine's order.
    let (first, last) = (lengths[0], lengths[lengths.len() - 1]);
    assert!(first.abs_diff(2 * last) <= 1, "{lengths:?}");
    let rows = lengths.iter().filter(|length| **length == first).count();
    assert!((5..=9).contains(&rows), "{lengths:?}");
}

/// A face with strong blendshapes whose names are as long as ARKit's longest.
fn expressive(bbox: Rect, channels: usize) -> Observation {
    let names: Vec<_> = (0..channels)
        .map(|index| format!("mouthShrugUpper{index:04}"))
        .collect();
    Observation {
        bbox,
        confidence: Some(0.99),
        blendshapes: Some(Blendshapes::new(names.into(), vec![1.0; channels])),
        ..boxed(0.0, 0.0, 0.0, 0.0)
    }
}

/// Columns and rows of the smallest rectangle around all that was drawn.
fn extent(changed: &[(usize, usize)]) -> [std::ops::RangeInclusive<usize>; 2] {
    let range = |side: fn(&(usize, usize)) -> usize| {
        let values = changed.iter().map(side);
        let bounds = values.clone().min().zip(values.max());
        let (least, most) = bounds.expect("something is drawn");
        least..=most
    };
    [range(|at| at.0), range(|at| at.1)]
}

/// A plate has a rim without letters and bars: one that the frame cuts lacks it on that side.
#[track_caller]
fn assert_is_a_whole_plate(picture: &Picture, case: &str) {
    let [columns, rows] = extent(&picture.changed());
    let rim = picture.color(*columns.start(), *rows.start());
    let sides = [columns.start(), columns.end()];
    for (x, y) in sides
        .into_iter()
        .flat_map(|x| rows.clone().map(move |y| (*x, y)))
    {
        assert_eq!(picture.color(x, y), rim, "{case}: column {x}, row {y}");
    }
    let sides = [rows.start(), rows.end()];
    for (x, y) in sides
        .into_iter()
        .flat_map(|y| columns.clone().map(move |x| (x, *y)))
    {
        assert_eq!(picture.color(x, y), rim, "{case}: column {x}, row {y}");
    }
}

#[test]
fn text_lies_inside_frames_of_every_shape() {
    let sizes = [
        (160, 90),
        (160, 120),
        (160, 160),
        (161, 285),
        (284, 160),
        (360, 640),
        (720, 1280),
    ];
    // As parts of the frame: in the middle, in corners and partly outside, and larger than the
    // frame.
    let places = [
        [0.3, 0.3, 0.4, 0.4],
        [-0.1, -0.1, 0.3, 0.3],
        [0.8, -0.1, 0.3, 0.3],
        [-0.1, 0.8, 0.3, 0.3],
        [0.8, 0.8, 0.3, 0.3],
        [-0.2, -0.2, 1.4, 1.4],
    ];
    for (width, height) in sizes {
        for place in places {
            for (text_size, blendshapes) in [(0.022, 8), (0.022, 100), (0.1, 8)] {
                for layer in [Layers::LABELS, Layers::BLENDSHAPES, Layers::INFO] {
                    let style = Style {
                        layers: layer,
                        text_size,
                        blendshapes,
                        ..STYLE
                    };
                    let [x, across] = [place[0], place[2]].map(|part| part * width as f32);
                    let [y, down] = [place[1], place[3]].map(|part| part * height as f32);
                    let face = expressive(Rect::new(x, y, across, down), 52);
                    let mut report = report(vec![face]);
                    report.status = FrameStatus::Skipped;
                    report.source = Arc::new(ReportSource {
                        engine: "opencv-yunet-pyfeat".to_owned(),
                        device: "cuda:0".to_owned(),
                        ..ReportSource::default()
                    });
                    (report.width, report.height) = (width as u32, height as u32);
                    let mut picture = Picture::rgb((width, height));
                    picture.draw(&report, &style);
                    let case = format!("{style:?} at {place:?} of {width}×{height}");
                    assert_is_a_whole_plate(&picture, &case);
                }
            }
        }
    }
}

/// Text is as large as in a landscape frame of the same shorter side, and next to the face where
/// there is room.
#[test]
fn a_panel_covers_no_face_that_leaves_it_room() {
    for (size, face) in [
        ((1280, 720), Rect::new(600.0, 200.0, 200.0, 200.0)),
        ((1280, 720), Rect::new(1000.0, 200.0, 200.0, 200.0)),
        ((720, 1280), Rect::new(20.0, 400.0, 300.0, 300.0)),
        ((720, 1280), Rect::new(400.0, 400.0, 300.0, 300.0)),
        ((720, 1280), Rect::new(160.0, 400.0, 400.0, 400.0)),
    ] {
        let style = Style {
            layers: Layers::BLENDSHAPES,
            text_size: 0.022,
            blendshapes: 8,
            ..STYLE
        };
        let mut report = report(vec![expressive(face, 8)]);
        (report.width, report.height) = (size.0 as u32, size.1 as u32);
        let mut picture = Picture::rgb(size);
        picture.draw(&report, &style);
        let [columns, rows] = extent(&picture.changed());
        // 28 letters of 8 px, 8 lines of 16 px, and a rim of 3 px.
        assert_eq!([columns.clone().count(), rows.clone().count()], [230, 134]);
        let plate = [columns.start(), rows.start()].map(|at| *at as f32);
        let plate = Rect::new(plate[0], plate[1], 230.0, 134.0);
        assert_eq!(plate.intersection(&face).area(), 0.0, "{size:?} {face:?}");
    }
}

/// Each panel is as large as the panel of a single face, and there are as many dark pixels as in
/// all panels together.
#[test]
fn panels_of_near_faces_do_not_cover_each_other() {
    let style = Style {
        layers: Layers::BLENDSHAPES | Layers::INFO,
        text_size: 0.022,
        blendshapes: 8,
        ..STYLE
    };
    let drawn = |faces: &[Rect], layers: Layers| {
        let faces = faces.iter().map(|bbox| expressive(*bbox, 8));
        let mut report = report(faces.collect());
        (report.width, report.height) = (1280, 720);
        let mut picture = Picture::rgb((1280, 720));
        picture.draw(&report, &Style { layers, ..style });
        picture.changed().len()
    };
    let side = |x, y| Rect::new(x, y, 120.0, 160.0);
    let info = drawn(&[], Layers::INFO);
    let panel = drawn(&[side(600.0, 300.0)], Layers::BLENDSHAPES);
    for faces in [
        vec![side(500.0, 300.0), side(640.0, 300.0)],
        vec![side(500.0, 300.0), side(520.0, 330.0)],
        vec![side(1000.0, 560.0), side(1140.0, 560.0)],
        vec![side(20.0, 10.0), side(150.0, 20.0), side(280.0, 10.0)],
    ] {
        let all = drawn(&faces, style.layers);
        assert_eq!(all, info + panel * faces.len(), "{faces:?}");
    }
    // A full frame has no room for more.
    let crowd: Vec<_> = (0..100)
        .map(|index| side(12.0 * index as f32, 300.0))
        .collect();
    let all = drawn(&crowd, style.layers) - info;
    assert_eq!(all % panel, 0);
    assert!(all / panel > 8, "{}", all / panel);
}

#[test]
fn a_face_out_of_sight_has_no_text() {
    let mut picture = Picture::rgb((160, 120));
    let style = Style {
        layers: Layers::LABELS | Layers::BLENDSHAPES,
        ..STYLE
    };
    for (x, y) in [
        (-61.0, 30.0),
        (161.0, 30.0),
        (40.0, -61.0),
        (40.0, 121.0),
        (f32::NAN, 30.0),
    ] {
        let bbox = Rect::new(x, y, 60.0, 60.0);
        picture.draw(&report(vec![expressive(bbox, 4)]), &style);
        assert!(picture.changed().is_empty(), "{x}, {y}");
    }
}

/// A drawing in Y′CbCr is the drawing in RGB, converted, with chroma averaged; on a frame of one
/// color.
#[test]
fn every_format_shows_what_rgb_shows() {
    let (width, height) = (161, 119);
    let report = report(vec![full(LandmarkScheme::MediaPipe478)]);
    let mut reference = Picture::rgb((width, height));
    reference.draw(&report, &all());
    for (name, layout) in yuv_layouts() {
        for (matrix, range) in [
            (ColorMatrix::Bt601, ColorRange::Limited),
            (ColorMatrix::Bt709, ColorRange::Limited),
            (ColorMatrix::Bt709, ColorRange::Full),
        ] {
            let colorimetry = Colorimetry {
                matrix,
                range,
                ..FULL
            };
            let mut picture = Picture::new((width, height), layout.clone(), colorimetry, 5);
            picture.draw(&report, &all());
            for (index, component) in layout.components.iter().enumerate() {
                let [across, down] = component.subsampling;
                let codes = |x: usize, y: usize| {
                    let color = reference.color(x, y);
                    f64::from(color.code(ColorModel::Yuv, colorimetry, index, component.depth))
                };
                // Each painting rounds, to 8 bits in RGB.
                let most = 3.0 * f64::from(component.depth as i32 - 8).exp2();
                for (row, column) in (0..height >> down)
                    .flat_map(|row| (0..width >> across).map(move |column| (row, column)))
                {
                    let pixels = (row << down..(row + 1) << down).flat_map(|y| {
                        (column << across..(column + 1) << across).map(move |x| (x, y))
                    });
                    let (mut sum, mut count) = (0.0, 0.0);
                    for (x, y) in pixels {
                        sum += codes(x, y);
                        count += 1.0;
                    }
                    let code = f64::from(picture.code(index, column << across, row << down));
                    // Coverage is averaged before it is mixed: where several inks overlap in one
                    // sample, that is another order.
                    let most = most * if across + down > 0 { 12.0 } else { 1.0 };
                    assert!(
                        (code - sum / count).abs() <= most,
                        "{name} {matrix:?} {range:?} component {index} at {column}, {row}: {code}, {}",
                        sum / count
                    );
                }
            }
        }
    }
}

/// With a single ink over a single color, the mean of the coverage and the mean of the colors
/// agree.
#[test]
fn chroma_of_one_ink_is_the_mean_of_its_pixels() {
    let report = report(vec![boxed(20.3, 20.7, 90.4, 70.2)]);
    let style = Style {
        line_width: 0.03,
        ..STYLE
    };
    let mut reference = Picture::new((160, 120), planar([0, 0]), FULL, 0);
    reference.draw(&report, &style);
    for (subsampling, name) in [([1, 1], "I420"), ([1, 0], "Y42B"), ([2, 2], "YUV9")] {
        let mut picture = Picture::new((160, 120), planar(subsampling), FULL, 0);
        picture.draw(&report, &style);
        let [across, down] = subsampling;
        for (row, column) in (0..120 >> down).flat_map(|y| (0..160 >> across).map(move |x| (y, x)))
        {
            for index in [1, 2] {
                let pixels = (row << down..(row + 1) << down)
                    .flat_map(|y| (column << across..(column + 1) << across).map(move |x| (x, y)));
                let sum: u32 = pixels.map(|(x, y)| reference.code(index, x, y)).sum();
                let mean = f64::from(sum) / f64::from(1 << (across + down));
                let code = f64::from(picture.code(index, column << across, row << down));
                assert!(
                    (code - mean).abs() <= 1.0,
                    "{name} {column}, {row}: {code} {mean}"
                );
            }
        }
    }
}

#[test]
fn padding_and_alpha_are_as_they_were() {
    let mut picture = Picture::new((33, 17), planar([1, 1]), FULL, 9);
    for (data, stride) in &mut picture.planes {
        let row = *stride - 9;
        for line in data.chunks_mut(*stride) {
            line[row..].fill(0xa5);
        }
    }
    picture.draw(&report(vec![boxed(-50.0, -50.0, 300.0, 160.0)]), &all());
    for (data, stride) in &picture.planes {
        for line in data.chunks(*stride) {
            assert!(line[*stride - 9..].iter().all(|byte| *byte == 0xa5));
        }
    }
    let mut opaque = Picture::new((64, 48), packed(ColorModel::Rgb, 4, &[1, 2, 3, 0]), FULL, 0);
    opaque.draw(&report(vec![full(LandmarkScheme::Ibug68)]), &all());
    let pixels = (0..48).flat_map(|y| (0..64).map(move |x| (x, y)));
    assert!(pixels.clone().all(|(x, y)| opaque.code(3, x, y) == 255));
}

#[test]
fn lines_have_their_color_where_the_frame_is_transparent() {
    let rgba = packed(ColorModel::Rgb, 4, &[0, 1, 2, 3]);
    let wide = words(packed(ColorModel::Rgb, 4, &[1, 2, 3, 0]), Word::Be16, 0, 16);
    for (layout, unit) in [(rgba, 1), (wide, 257)] {
        let mut picture = Picture::new((160, 120), layout, FULL, 0);
        picture.planes[0].0.fill(0);
        let style = Style {
            color: Some(Rgb([255, 127, 0])),
            line_width: 0.003,
            ..STYLE
        };
        picture.draw(&report(vec![boxed(10.3, 10.6, 100.0, 80.0)]), &style);
        let (mut seen, mut faint) = (0, 0);
        for (x, y) in (0..120).flat_map(|y| (0..160).map(move |x| (x, y))) {
            let [r, g, b, alpha] = [0, 1, 2, 3].map(|index| picture.code(index, x, y) / unit);
            if alpha > 0 {
                assert!(
                    r >= 254 && g.abs_diff(127) <= 1 && b <= 1,
                    "{r} {g} {b} {alpha}"
                );
                seen += 1;
                faint += u32::from(alpha < 200);
            }
        }
        assert!(seen > 300 && faint > 100, "{seen} {faint}");
    }
}

#[test]
fn nothing_in_a_report_makes_a_drawing_fail() {
    let bad = [
        f32::NAN,
        f32::INFINITY,
        -f32::INFINITY,
        f32::MAX,
        -1e30,
        1e9,
        0.0,
    ];
    let mut faces = Vec::new();
    for value in bad {
        let mut face = full(LandmarkScheme::MediaPipe478);
        face.bbox = Rect::new(value, 10.0, 20.0, value);
        face.confidence = Some(value);
        let landmarks = face.landmarks.as_mut().expect("landmarks");
        landmarks.points[5].x = value;
        landmarks.points[10].y = value;
        landmarks.points.truncate(300);
        face.key_points[0].x = value;
        if let Some(pose) = &mut face.pose {
            pose.matrix[0][0] = value;
        }
        if let Some(gaze) = &mut face.gaze {
            gaze.left.position.y = value;
            gaze.right.confidence = value;
        }
        face.blendshapes = Some(Blendshapes::new(
            Arc::new(["ein\nsehr langer Name\0, 😀😀😀😀😀😀".to_owned()]),
            vec![value],
        ));
        faces.push(face);
    }
    faces.push(boxed(-500.0, -500.0, 20.0, 20.0));
    faces.push(boxed(5000.0, 5000.0, 20.0, 20.0));
    faces.push(boxed(50.0, 50.0, -20.0, -20.0));
    let mut report = report(faces);
    for source in [
        "",
        "an engine with a name that is longer than anything that there is room for",
    ] {
        report.source = Arc::new(ReportSource {
            engine: source.to_owned(),
            ..(*report.source).clone()
        });
        for &status in FrameStatus::VARIANTS {
            report.status = status;
            for size in [(1, 1), (1, 7), (3, 1), (33, 17), (160, 120)] {
                for (_, layout) in yuv_layouts() {
                    Picture::new(size, layout, FULL, 0).draw(&report, &all());
                }
            }
        }
    }
    for value in [0.0, 0.1, f32::NAN, f32::INFINITY, -1.0, 1e9] {
        let style = Style {
            line_width: value,
            text_size: value,
            ..all()
        };
        Picture::rgb((33, 17)).draw(&report, &style);
    }
    report.width = 0;
    report.height = 0;
    Picture::rgb((33, 17)).draw(&report, &all());
}

/// Returns the reason why three planes of 8×8 pixels in I420 are refused; the first `missing` bytes
/// of chroma are missing.
fn refusal(size: (usize, usize), layout: &Layout, missing: usize) -> Option<CanvasError> {
    let mut planes = [8 * 8, 4 * 4 - missing, 4 * 4].map(|bytes| vec![0; bytes]);
    let planes = planes.iter_mut().zip([8, 4, 4]);
    let planes = planes.map(|(data, stride)| PlaneMut { data, stride });
    Canvas::new(size, layout, FULL, planes.collect()).err()
}

#[test]
fn planes_that_hold_no_frame_are_refused() {
    let layout = planar([1, 1]);
    assert_eq!(refusal((8, 8), &layout, 0), None);
    assert!(matches!(
        refusal((8, 8), &layout, 1),
        Some(CanvasError::PlaneTooSmall { component: 1, .. })
    ));
    for size in [(0, 8), (8, 0), (usize::MAX, 8), (8, usize::MAX)] {
        assert!(refusal(size, &layout, 0).is_some(), "{size:?}");
    }
    let first = layout.components[0];
    for broken in [
        Component { plane: 3, ..first },
        Component { depth: 9, ..first },
        Component { depth: 0, ..first },
        Component { step: 0, ..first },
        Component {
            offset: usize::MAX,
            ..first
        },
        Component {
            subsampling: [40, 0],
            ..first
        },
        Component {
            word: Word::Le16,
            ..first
        },
    ] {
        let layout = Layout {
            components: vec![broken],
            ..layout.clone()
        };
        assert!(refusal((8, 8), &layout, 0).is_some(), "{broken:?}");
    }
}

/// Every layout, with bits that no component uses.
fn noisy() -> Vec<(&'static str, Picture)> {
    let rgb16 = Layout {
        model: ColorModel::Rgb,
        components: [(11, 5), (5, 6), (0, 5)]
            .map(|(shift, depth)| Component {
                word: Word::Le16,
                shift,
                depth,
                ..Component::byte(0, 0, 2, [0, 0])
            })
            .into(),
    };
    let layouts = yuv_layouts().into_iter().chain([
        ("RGB", packed(ColorModel::Rgb, 3, &[0, 1, 2])),
        ("BGRA", packed(ColorModel::Rgb, 4, &[2, 1, 0, 3])),
        ("RGB16", rgb16),
        ("GRAY8", packed(ColorModel::Gray, 1, &[0])),
    ]);
    let mut state = 1u32;
    let mut noise = move || {
        // G. Marsaglia: Xorshift RNGs, 2003.
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as u8
    };
    let filled = layouts.map(|(name, layout)| {
        let mut picture = Picture::new((160, 120), layout, FULL, 5);
        let bytes = picture.planes.iter_mut().flat_map(|(data, _)| data);
        bytes.for_each(|byte| *byte = noise());
        (name, picture)
    });
    filled.collect()
}

/// A rectangle on samples of every subsampling, with 3×2 cells.
fn region() -> Region {
    let corners = [(40.0, 32.0), (100.0, 32.0), (100.0, 72.0), (40.0, 72.0)];
    Region {
        id: 1,
        outline: corners.map(|(x, y)| Point::new(x, y)).into(),
        cell: 20.0,
    }
}

/// The codes of a component in some pixels.
fn codes(
    picture: &Picture,
    index: usize,
    columns: std::ops::Range<usize>,
    rows: std::ops::Range<usize>,
) -> Vec<u32> {
    let pixels = rows.flat_map(|y| columns.clone().map(move |x| (x, y)));
    pixels.map(|(x, y)| picture.code(index, x, y)).collect()
}

fn spread(codes: &[u32]) -> u32 {
    codes.iter().max().expect("pixels") - codes.iter().min().expect("pixels")
}

#[test]
fn regions_are_covered_in_every_format_and_nothing_else_changes() {
    for (name, before) in noisy() {
        for mode in [Mode::Pixelate, Mode::Blur, Mode::Fill] {
            let mut after = before.clone();
            let cover = Cover::Regions(vec![region()]);
            after.canvas(|canvas| Overlay::default().redact(canvas, &cover, mode).unwrap());
            for index in 0..before.layout.colors().len() {
                let case = format!("{name} {mode:?} {index}");
                let cell = |picture| codes(picture, index, 40..60, 32..52);
                let (old, new) = (cell(&before), cell(&after));
                let mean = old.iter().sum::<u32>() as f64 / old.len() as f64;
                match mode {
                    Mode::Pixelate => {
                        assert_eq!(spread(&new), 0, "{case}");
                        assert!((f64::from(new[0]) - mean).abs() <= 0.5, "{case}");
                    }
                    Mode::Blur => assert!(spread(&new) < spread(&old) / 3, "{case}"),
                    Mode::Fill => assert_eq!(spread(&new), 0, "{case}"),
                }
            }
            // The rest is the same, bit by bit, when the region is put back.
            restore(&mut after, &before);
            assert_eq!(after, before, "{name} {mode:?}");
        }
    }
}

/// Copies the bits of the colors inside of the region.
fn restore(picture: &mut Picture, before: &Picture) {
    for component in before.layout.components.clone() {
        let [across, down] = component.subsampling;
        let (data, stride) = &mut picture.planes[component.plane];
        let (old, _) = &before.planes[component.plane];
        for row in 32 >> down..72 >> down {
            let start = row * *stride + (40 >> across) * component.step;
            let end = row * *stride + (100 >> across) * component.step;
            data[start..end].copy_from_slice(&old[start..end]);
        }
    }
}

#[test]
fn alpha_stays_unless_a_region_is_filled() {
    let (_, before) = noisy().remove(11);
    for (mode, is_kept) in [
        (Mode::Pixelate, true),
        (Mode::Blur, true),
        (Mode::Fill, false),
    ] {
        let mut after = before.clone();
        let cover = Cover::Regions(vec![region()]);
        after.canvas(|canvas| Overlay::default().redact(canvas, &cover, mode).unwrap());
        let alpha = |picture| codes(picture, 3, 0..160, 0..120);
        assert_eq!(alpha(&before) == alpha(&after), is_kept, "{mode:?}");
    }
}

#[test]
fn a_whole_frame_becomes_black_and_shapes_outside_of_it_change_nothing() {
    for (name, before) in noisy() {
        let mut black = before.clone();
        black.canvas(|canvas| {
            Overlay::default()
                .redact(canvas, &Cover::Frame, Mode::Blur)
                .unwrap()
        });
        for index in 0..before.layout.colors().len() {
            let codes = codes(&black, index, 0..160, 0..120);
            let want = Rgb::BLACK.code(
                before.layout.model,
                FULL,
                index,
                before.layout.components[index].depth,
            );
            assert!(codes.iter().all(|code| *code == want), "{name} {index}");
        }
        for (x, y) in [(-500.0, 0.0), (500.0, 0.0), (0.0, 500.0), (f32::NAN, 0.0)] {
            let mut region = region();
            region.outline.iter_mut().for_each(|point| {
                *point = Point::new(point.x + x, point.y + y);
            });
            let mut after = before.clone();
            let cover = Cover::Regions(vec![region]);
            for mode in [Mode::Pixelate, Mode::Fill] {
                after.canvas(|canvas| Overlay::default().redact(canvas, &cover, mode).unwrap());
            }
            assert_eq!(after, before, "{name} {x} {y}");
        }
    }
}
