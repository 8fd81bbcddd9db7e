// SPDX-License-Identifier: MPL-2.0
//! Nodes for Nuke: a tracker with the points of each face, a crop with its box, and an axis with its
//! pose.
//!
//! The columns of the tracker follow `test/nuke.nk` in internetimagery/track-to-attribute, which
//! Nuke 8 wrote. The axis has `rot_order ZXY`, as in the exporters of 3DEqualizer. The origin is the
//! bottom left corner of the picture.

use super::tracks::{
    Curve, FaceTracks, Program, Tracks, center_and_size, changed, decimal, presence,
};

pub(super) const PROGRAM: Program = Program {
    extension: "nk",
    start: START,
    first_frame: 1,
    text: |tracks| Ok(text(tracks)),
};

const START: &str = "# Tracks written by facetrack export\n";

/// Decimals of a value: thousandths of a pixel.
const DECIMALS: usize = 3;

/// Distance of the nodes in the graph.
const SPACING: usize = 120;

/// Columns of a tracker: type, flags and name.
#[rustfmt::skip]
const COLUMNS: [&str; 31] = [
    "5 1 20 enable e", "3 1 75 name name", "2 1 58 track_x track_x", "2 1 58 track_y track_y",
    "2 1 63 offset_x offset_x", "2 1 63 offset_y offset_y", "4 1 27 T T", "4 1 27 R R", "4 1 27 S S",
    "2 0 45 error error", "1 1 0 error_min error_min", "1 1 0 error_max error_max",
    "1 1 0 pattern_x pattern_x", "1 1 0 pattern_y pattern_y", "1 1 0 pattern_r pattern_r",
    "1 1 0 pattern_t pattern_t", "1 1 0 search_x search_x", "1 1 0 search_y search_y",
    "1 1 0 search_r search_r", "1 1 0 search_t search_t", "2 1 0 key_track key_track",
    "2 1 0 key_search_x key_search_x", "2 1 0 key_search_y key_search_y",
    "2 1 0 key_search_r key_search_r", "2 1 0 key_search_t key_search_t",
    "2 1 0 key_track_x key_track_x", "2 1 0 key_track_y key_track_y",
    "2 1 0 key_track_r key_track_r", "2 1 0 key_track_t key_track_t",
    "2 1 0 key_centre_offset_x key_centre_offset_x",
    "2 1 0 key_centre_offset_y key_centre_offset_y",
];

/// Values of the columns after the position: no offset, used for translation only, no error, and
/// areas for tracking further.
const REST: &str =
    "{} {} 1 0 0 {} 1 0 -32 -32 32 32 -22 -22 22 22 {} {} {} {} {} {} {} {} {} {} {}";

fn text(tracks: &Tracks) -> String {
    let mut out = START.to_owned();
    let mut place = 0;
    let mut node = |class: &str, name: &str, knobs: &str| {
        let x = SPACING * place;
        place += 1;
        out += &format!("{class} {{\n inputs 0\n{knobs} name {name}\n xpos {x}\n ypos 0\n}}\n");
    };
    for (id, face) in &tracks.faces {
        node(
            "Tracker4",
            &format!("obj_{id}_points"),
            &tracker(face, tracks.height),
        );
        if !face.edges[0].is_empty() {
            node("Crop", &format!("obj_{id}_box"), &crop(face, tracks.height));
        }
        if !face.pose[0].is_empty() {
            node("Axis2", &format!("obj_{id}_pose"), &axis(face));
        }
    }
    out
}

fn tracker(face: &FaceTracks, height: f64) -> String {
    let [x, y, ..] = center_and_size(&face.edges);
    let center = (!x.is_empty()).then_some(("box", [x, y]));
    let points = face
        .points
        .iter()
        .map(|(name, curves)| (name.as_str(), curves.clone()));
    let enable = curve("curve K", &presence(&face.frames));
    let rows = center.into_iter().chain(points).map(|(name, [x, y])| {
        let [x, y] = [x, upward(&y, height)].map(|it| curve("curve", &it));
        format!(" {{ {enable} \"{name}\" {x} {y} {REST} }}\n")
    });
    let rows: Vec<_> = rows.collect();
    let columns = COLUMNS.map(|column| format!("{{ {column} 1 }}\n"));
    let (count, columns, rows) = (rows.len(), columns.concat(), rows.concat());
    let size = COLUMNS.len();
    format!(" tracks {{ {{ 1 {size} {count} }}\n{{ {columns}}}\n{{\n{rows}}}\n}}\n")
}

/// The box as left, bottom, right and top edge.
fn crop(face: &FaceTracks, height: f64) -> String {
    let [left, top, right, bottom] = &face.edges;
    let (bottom, top) = (upward(bottom, height), upward(top, height));
    let edges = [left, &bottom, right, &top].map(|it| curve("curve", it));
    format!(" box {{{}}}\n", edges.join(" "))
}

/// The pose of the record, whose space is Nuke's: the rotation is first about z, then x, then y.
fn axis(face: &FaceTracks) -> String {
    let [x, y, z, yaw, pitch, roll] = face.pose.each_ref().map(|it| curve("curve", it));
    format!(" rot_order ZXY\n translate {{{x} {y} {z}}}\n rotate {{{pitch} {yaw} {roll}}}\n")
}

fn upward(curve: &Curve, height: f64) -> Curve {
    changed(curve, |y| height - y)
}

/// The keys of a curve. The first two keys after a gap have their frame; the others follow at the
/// same distance.
fn curve(kind: &str, keys: &Curve) -> String {
    let mut out = format!("{{{kind}");
    let mut successive = 0;
    for (place, (frame, value)) in keys.iter().enumerate() {
        let follows = place > 0 && keys[place - 1].0 + 1 == *frame;
        successive = if follows { successive + 1 } else { 0 };
        if successive < 2 {
            out += &format!(" x{frame}");
        }
        out += &format!(" {}", decimal(*value, DECIMALS));
    }
    out + "}"
}
