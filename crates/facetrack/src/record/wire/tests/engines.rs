// SPDX-License-Identifier: MPL-2.0
//! The keys that the faces of each engine can have, which the columns of tables follow from.

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::{Map, Value as Json, json};

use super::super::Face;
use crate::blendshape::Blendshapes;
use crate::engine::{EngineConfig, EngineInfo, EngineKind, describe};
use crate::geometry::Rect;
use crate::observation::{
    Attributes, Features, Fields, FitFailure, Gaze, Gender, HeadPose, Landmark, LandmarkScheme,
    Landmarks, ModelFit, MorphableFit, Observation,
};
use crate::record::export::Export;
use crate::report::TrackedFace;

/// Properties of `facetrack` without which no face has the key.
const OPTIONS: [(&str, &[&str]); 3] = [
    ("embedding", &["embedding"]),
    ("blendshapes_raw", CORRECTIONS),
    ("blendshapes_corrected", CORRECTIONS),
];

/// Properties of `facetrack` that change blendshapes.
const CORRECTIONS: &[&str] = &["neutral-time", "neutral-file", "blendshape-gain"];

/// Lengths in the published model of `eos`, `sfm_shape_3448`, and of its outline.
const SHAPE: usize = 63;
const EXPRESSIONS: usize = 6;
const OUTLINE: usize = 16;

/// Points of OpenSeeFace's model besides the landmarks: the pupils and the centres of the eyeballs.
const EYES: usize = 4;

/// The engines of this build with the keys of their faces, in the order of the schema's engines.
/// `published` has those that other builds have.
pub(super) fn engines(published: &Json) -> Json {
    let mut engines = published.as_object().cloned().unwrap_or_default();
    for kind in EngineKind::ALL {
        engines.insert(kind.name().to_owned(), engine(&info(kind)));
    }
    Json::Object(engines)
}

/// Everything that the engine can measure.
fn info(kind: EngineKind) -> EngineInfo {
    let config = EngineConfig {
        script: Some("face; landmarks".to_owned()),
        #[cfg(feature = "insightface")]
        insightface: crate::engine::InsightFaceSettings {
            embedding: true,
            ..Default::default()
        },
        ..EngineConfig::default()
    };
    describe(kind, &config).expect("the settings are valid")
}

/// The columns are in the order of the keys in a record.
fn engine(info: &EngineInfo) -> Json {
    let faces = faces(info);
    let order = keys(&faces[0], Fields::all());
    let words = Fields::WORDS
        .iter()
        .map(|(field, word, _)| (*field, Some(*word)));
    let mut columns = IndexMap::new();
    for (fields, word) in std::iter::once((Fields::empty(), None)).chain(words) {
        for (path, value) in faces.iter().flat_map(|face| keys(face, fields)) {
            let column = || column(&path, &value, word);
            columns.entry(path.clone()).or_insert_with(column);
        }
    }
    let first = |path: &str| path.split('.').next().map(str::to_owned);
    columns.sort_by_cached_key(|path, _| {
        let mut order = order.iter();
        order.position(|(other, _)| first(other) == first(path))
    });
    json!({"blendshapes": info.blendshapes[..], "columns": columns})
}

/// A column by the keyword of `trackjsonsink fields` that selects it, the length of its lists, and
/// the properties that it needs.
fn column(path: &str, value: &Json, word: Option<&str>) -> Json {
    let mut column = Map::new();
    if let Some(word) = word {
        column.insert("fields".to_owned(), word.into());
    }
    let first = path.split('.').next();
    if let Some((_, options)) = OPTIONS.iter().find(|(name, _)| first == Some(name)) {
        column.insert("options".to_owned(), json!(options));
    }
    let length = length(value);
    if length > 0 {
        column.insert("length".to_owned(), length.into());
    }
    Json::Object(column)
}

/// Number of values in a list, also of lists; otherwise 0.
fn length(value: &Json) -> usize {
    let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().map(|it| length(it).max(1)).sum()
}

/// The values of a face by their paths, without the keys that every face has. The names of
/// blendshapes are one path.
fn keys(face: &Observation, fields: Fields) -> Vec<(String, Json)> {
    let common = json(Observation::default(), Fields::empty());
    let mut found = Vec::new();
    add_keys("", &json(face.clone(), fields), &mut found);
    found.retain(|(path, _)| common.get(path).is_none());
    found
}

fn json(face: Observation, fields: Fields) -> Json {
    let export = Export {
        fields,
        ..Export::default()
    };
    let bbox = Rect::new(0.0, 0.0, 1.0, 1.0);
    let face = Observation { bbox, ..face };
    let tracked = TrackedFace { id: 1, face };
    let face = Face::new(&tracked, &export).expect("its box has an extent");
    serde_json::to_value(face).expect("it has a JSON form")
}

fn add_keys(path: &str, value: &Json, found: &mut Vec<(String, Json)>) {
    let Some(object) = value.as_object() else {
        found.push((path.to_owned(), value.clone()));
        return;
    };
    if path.starts_with("blendshapes") {
        found.push((format!("{path}.*"), Json::Null));
        return;
    }
    for (name, value) in object {
        let path = match path {
            "" => name.clone(),
            path => format!("{path}.{name}"),
        };
        add_keys(&path, value, found);
    }
}

/// Faces with everything that the engine measures, one for each outcome of a fit.
fn faces(info: &EngineInfo) -> Vec<Observation> {
    let has = |field| info.measures.contains(field);
    let blendshapes = (!info.blendshapes.is_empty()).then(|| {
        let values = vec![0.0; info.blendshapes.len()];
        let raw = Some(values.clone());
        let names = info.blendshapes.clone();
        let restored = Blendshapes::restored(names, values, raw, info.blendshape_source);
        restored.expect("as many values").assume_corrected()
    });
    let face = Observation {
        confidence: Some(1.0),
        // The published models of `insightface` measure only the secondary ones, which are then the
        // landmarks.
        landmarks: info.secondary_landmarks.or(info.landmarks).map(landmarks),
        secondary_landmarks: info.secondary_landmarks.map(landmarks),
        key_points: vec![Default::default(); info.key_points],
        blendshapes,
        pose: has(Fields::POSE).then_some(HeadPose {
            matrix: Default::default(),
        }),
        gaze: has(Fields::GAZE).then(Gaze::default),
        features: has(Fields::FEATURES).then_some(Features([0.0; 14])),
        fit: has(Fields::FIT).then(|| fit(info)),
        attributes: has(Fields::ATTRIBUTES).then_some(Attributes {
            age: 0.0,
            gender: Gender::Female,
        }),
        embedding: (info.embedding > 0).then(|| vec![0.0; info.embedding].into()),
        ..Observation::default()
    };
    let outcomes: &[_] = match has(Fields::MORPHABLE) {
        true => &[Some(Ok(morphable())), Some(Err(FitFailure::Degenerate))],
        false => &[None],
    };
    let with = |morphable: &Option<_>| Observation {
        morphable: morphable.clone(),
        ..face.clone()
    };
    outcomes.iter().map(with).collect()
}

/// Only OpenSeeFace's landmarks have scores.
fn landmarks(scheme: LandmarkScheme) -> Landmarks {
    let landmarks = Landmarks::new(scheme, vec![Landmark::default(); scheme.count()]);
    let scores = match scheme {
        LandmarkScheme::OpenSeeFace66 => vec![0.0; scheme.count()],
        _ => Vec::new(),
    };
    landmarks.with_confidences(scores).expect("one each")
}

fn fit(info: &EngineInfo) -> ModelFit {
    let landmarks = info.landmarks.map_or(0, LandmarkScheme::count);
    ModelFit {
        points: vec![[0.0; 3]; landmarks + EYES],
        ..ModelFit::default()
    }
}

fn morphable() -> MorphableFit {
    MorphableFit {
        shape: vec![0.0; SHAPE],
        expression: vec![0.0; EXPRESSIONS],
        expression_names: Arc::from([const { String::new() }; EXPRESSIONS]),
        rotation: [0.0; 4],
        origin: Default::default(),
        scale: 1.0,
        residual: 0.0,
        contour: vec![Default::default(); OUTLINE],
        mesh: None,
    }
}
