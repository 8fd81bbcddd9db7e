// SPDX-License-Identifier: MPL-2.0
//! The columns of tables: their order, and what the types do not say about them.

use serde_json::{Map, Value as Json, json};

use Group::{Always, Large, Older};

/// When a column is in a table.
#[derive(Clone, Copy, PartialEq)]
enum Group {
    Always,
    /// On request, because of its size.
    Large,
    /// On request, because it is only there for older consumers.
    Older,
}

/// Columns of the frame: name, unit, range and meaning.
#[rustfmt::skip]
const PLACE: [(&str, &str, &str, &str); 4] = [
    ("video", "", "", "Id of the video, the same for all of its rows: the path of the record below its folder, without the suffix; of a single record, its name."),
    ("frame", "", "from 1", "Number of the frame in the video."),
    ("seconds", "s", "from 0", "Time of the frame in the video: pts, or computed from the frame rate where pts is missing."),
    ("pts", "ns", "from 0", "Time of the frame in the video as recorded; missing if the frame has no timestamp."),
];

/// Columns of a face, in the order of a table: name, unit, range. Identity, place and scores come
/// first, then what most studies use, lists of points last. A name that ends with `.*` stands for
/// all values of an object, in alphabetical order.
#[rustfmt::skip]
const FACE: [(&str, &str, &str, Group); 62] = [
    ("id", "", "", Always),
    ("box", "px", "", Always),
    ("bbox_xmin", "px", "", Always),
    ("bbox_ymin", "px", "", Always),
    ("bbox_width", "px", "", Always),
    ("bbox_height", "px", "", Always),
    ("bbox_xmax", "px", "", Always),
    ("bbox_ymax", "px", "", Always),
    ("centroid_x", "px", "", Always),
    ("centroid_y", "px", "", Always),
    ("confidence", "", "0 to 1", Always),
    ("origin", "", "", Always),
    ("pose.yaw", "°", "−180 to 180", Always),
    ("pose.pitch", "°", "−90 to 90", Always),
    ("pose.roll", "°", "−180 to 180", Always),
    ("pose.matrix", "", "", Always),
    ("blendshapes_source", "", "", Always),
    ("blendshapes_corrected", "", "", Always),
    ("blendshapes.*", "", "0 to 1", Always),
    ("blendshapes_raw.*", "", "0 to 1", Always),
    ("features.*", "", "−1 to 1", Always),
    ("eye_openness", "", "0 to 1", Always),
    ("gaze.right.x", "px", "", Always),
    ("gaze.right.y", "px", "", Always),
    ("gaze.right.confidence", "", "0 to 1", Always),
    ("gaze.left.x", "px", "", Always),
    ("gaze.left.y", "px", "", Always),
    ("gaze.left.confidence", "", "0 to 1", Always),
    ("age", "years", "", Always),
    ("gender", "", "", Always),
    ("eos_fit.failure", "", "", Always),
    ("eos_fit.residual", "px", "from 0", Always),
    ("eos_fit.scale", "px/mm", "from 0", Always),
    ("eos_fit.rotation", "", "−1 to 1", Always),
    ("eos_fit.origin", "px", "", Always),
    ("eos_fit.expressions", "", "", Always),
    ("eos.expression_coeffs", "", "from 0", Always),
    ("eos.shape_coeffs", "", "", Always),
    ("eos_fit.contour", "px", "", Always),
    ("fit.success", "", "", Always),
    ("fit.error", "px", "from 0", Always),
    ("fit.euler", "°", "−180 to 180", Always),
    ("fit.rotation", "rad", "", Always),
    ("fit.quaternion", "", "−1 to 1", Always),
    ("fit.translation", "", "", Always),
    ("fit.landmarks_3d", "", "", Always),
    ("fit.projected", "px", "", Always),
    ("embedding", "", "−1 to 1", Always),
    ("key_points", "px", "", Always),
    ("landmark_scheme", "", "", Always),
    ("landmark_confidence", "", "", Large),
    ("landmarks", "px", "", Large),
    ("landmarks_106", "px", "", Large),
    ("source", "", "", Older),
    ("label", "", "", Older),
    ("is_speaking", "", "", Older),
    ("speaking_confidence", "", "0 to 1", Older),
    ("speaking_method", "", "", Older),
    ("speaking_sources.visual.jaw_open", "", "0 to 1", Older),
    ("speaking_sources.visual.jaw_threshold", "", "0 to 1", Older),
    ("speaking_sources.visual.mouth_activity", "", "", Older),
    ("speaking_sources.visual.confidence", "", "0 to 1", Older),
];

/// All columns by their names, in their order.
pub(super) fn columns() -> Json {
    let mut columns = Map::new();
    for (name, unit, range, description) in PLACE {
        let mut column = column(unit, range, Always);
        column["description"] = description.into();
        columns.insert(name.to_owned(), column);
    }
    for (name, unit, range, group) in FACE {
        columns.insert(name.to_owned(), column(unit, range, group));
    }
    Json::Object(columns)
}

fn column(unit: &str, range: &str, group: Group) -> Json {
    let mut column = json!({});
    for (key, text) in [("unit", unit), ("range", range)] {
        if !text.is_empty() {
            column[key] = text.into();
        }
    }
    match group {
        Always => (),
        Large => column["large"] = true.into(),
        Older => column["older"] = true.into(),
    }
    column
}

/// A new measurement gets a column by being listed.
#[test]
fn every_value_of_a_face_has_a_column() {
    let schema = super::schema(&json!({}));
    let mut found = Vec::new();
    add_values("", &schema["$defs"]["object"], &schema, &mut found);
    found.sort();
    let mut listed = FACE.map(|(name, ..)| name.to_owned());
    listed.sort();
    assert_eq!(found, listed);
}

fn add_values(path: &str, key: &Json, schema: &Json, found: &mut Vec<String>) {
    let reference = key["$ref"].as_str().and_then(|it| it.strip_prefix('#'));
    let key = reference.and_then(|it| schema.pointer(it)).unwrap_or(key);
    let Some(properties) = key["properties"].as_object() else {
        let end = if key["additionalProperties"].is_object() {
            ".*"
        } else {
            ""
        };
        found.push(format!("{path}{end}"));
        return;
    };
    for (name, key) in properties {
        let path = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        add_values(&path, key, schema, found);
    }
}
