// SPDX-License-Identifier: MPL-2.0
//! Selects what to track of a face: its box, its pose, and points.

use std::str::FromStr;

use facetrack::observation::LandmarkScheme;

use crate::faces::{AXES, Contents};

/// Names of points, on the sides of the face.
const NAMES: [&str; 6] = [
    "right-eye",
    "left-eye",
    "nose",
    "mouth-right",
    "mouth-left",
    "chin",
];

/// Number of names that detectors with key points have, too, in the order of YuNet's key points.
const KEY_POINTS: usize = 5;

/// Numbers of a key point.
const PLANE: usize = 2;

/// Something to track.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    Box,
    Pose,
    /// Index in [`NAMES`].
    Named(usize),
    Landmark(usize),
}

/// A list of things to track.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Points(Vec<Item>);

/// A point: the mean of some landmarks or key points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Point {
    pub name: String,
    /// Column with the points.
    pub column: usize,
    /// Places of the x of each point in the column. The y follows.
    pub places: Vec<usize>,
}

/// The parts of a face to track.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    pub has_box: bool,
    pub has_pose: bool,
    pub points: Vec<Point>,
}

impl FromStr for Points {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let items: Result<_, _> = text.split(',').map(item).collect();
        items.map(Self)
    }
}

fn item(text: &str) -> Result<Item, String> {
    match text {
        "box" => return Ok(Item::Box),
        "pose" => return Ok(Item::Pose),
        _ => (),
    }
    let named = NAMES.iter().position(|name| *name == text);
    let named = named.map(Item::Named);
    named
        .or_else(|| text.parse().ok().map(Item::Landmark))
        .ok_or_else(|| {
            let names = NAMES.join(", ");
            format!("{text} is not box, pose, the number of a landmark from 0, or one of {names}")
        })
}

impl Wanted {
    /// The `points` of a record with these contents; by default everything that it has.
    ///
    /// # Errors
    /// Returns an error if the record lacks one of the points.
    pub(super) fn new(points: Option<&Points>, contents: &Contents) -> Result<Self, String> {
        let Some(Points(items)) = points else {
            let named = (0..NAMES.len()).filter_map(|name| named(name, contents));
            return Ok(Self {
                has_box: true,
                has_pose: contents.place("pose.matrix").is_some(),
                points: named.collect(),
            });
        };
        let mut wanted = Self::default();
        for item in items {
            wanted.add(item, contents)?;
        }
        Ok(wanted)
    }

    fn add(&mut self, item: &Item, contents: &Contents) -> Result<(), String> {
        let (name, point) = match item {
            Item::Box => {
                self.has_box = true;
                return Ok(());
            }
            Item::Pose => {
                self.has_pose = contents.place("pose.matrix").is_some();
                return require(self.has_pose, "head pose");
            }
            Item::Named(name) => (NAMES[*name].to_owned(), named(*name, contents)),
            Item::Landmark(index) => (format!("landmark {index}"), landmark(*index, contents)),
        };
        require(point.is_some(), &name)?;
        self.points.extend(point);
        Ok(())
    }
}

fn require(is_there: bool, what: &str) -> Result<(), String> {
    if is_there {
        return Ok(());
    }
    Err(format!(
        "it has no {what}. Record with verbose=true, and with an engine that measures it"
    ))
}

fn landmark(index: usize, contents: &Contents) -> Option<Point> {
    (index < contents.landmarks).then_some(())?;
    Some(Point {
        name: index.to_string(),
        column: contents.place("landmarks")?,
        places: vec![AXES.len() * index],
    })
}

/// The point with this name, of the landmarks or else of the key points.
fn named(name: usize, contents: &Contents) -> Option<Point> {
    let mut schemes = LandmarkScheme::ALL.iter();
    let scheme = schemes.find(|scheme| scheme.count() == contents.landmarks);
    let (column, places) = match scheme {
        Some(scheme) => {
            let places = landmarks(*scheme)[name].iter();
            ("landmarks", places.map(|it| AXES.len() * it).collect())
        }
        None => {
            let column = &contents.columns[contents.place("key_points")?];
            let is_known = name < KEY_POINTS && column.parts.len() == PLANE * KEY_POINTS;
            is_known.then_some(("key_points", vec![PLANE * name]))?
        }
    };
    Some(Point {
        name: NAMES[name].to_owned(),
        column: contents.place(column)?,
        places,
    })
}

/// The landmarks of each of [`NAMES`]. Eyes are the centre of the iris, or the mean of the rim; see
/// the contours of the overlay.
fn landmarks(scheme: LandmarkScheme) -> [&'static [usize]; 6] {
    const RIGHT_EYE: &[usize] = &[36, 37, 38, 39, 40, 41];
    const LEFT_EYE: &[usize] = &[42, 43, 44, 45, 46, 47];
    match scheme {
        LandmarkScheme::MediaPipe478 => [&[468], &[473], &[1], &[61], &[291], &[152]],
        LandmarkScheme::OpenSeeFace66 => [RIGHT_EYE, LEFT_EYE, &[30], &[58], &[62], &[8]],
        LandmarkScheme::Ibug68 => [RIGHT_EYE, LEFT_EYE, &[30], &[48], &[54], &[8]],
        LandmarkScheme::InsightFace106 => [
            &[35, 41, 40, 42, 39, 37, 33, 36],
            &[89, 95, 94, 96, 93, 91, 87, 90],
            &[86],
            &[52],
            &[61],
            &[0],
        ],
    }
}
