// SPDX-License-Identifier: MPL-2.0
//! Where packs of InsightFace's networks are looked for.

use std::fs;
use std::path::{Component, Path, PathBuf, is_separator};

use super::{Surroundings, listed};
use crate::model::ModelError;

/// The variable with the folder in which InsightFace itself keeps its own, `models/` among them.
pub const INSIGHTFACE_HOME_VARIABLE: &str = "INSIGHTFACE_HOME";

/// The packs that InsightFace publishes: its default, then the others, better ones first.
const PACKS: [&str; 5] = [
    "buffalo_l",
    "antelopev2",
    "buffalo_m",
    "buffalo_s",
    "buffalo_sc",
];

/// The folder of a collection of models that holds packs, and networks outside of packs.
const PACK_FAMILY: &str = "insightface";

impl Surroundings {
    /// As [`super::pack`].
    pub(super) fn pack(
        &self,
        explicit: Option<&Path>,
        models_dir: Option<&Path>,
    ) -> Result<PathBuf, ModelError> {
        let folders = self.pack_folders(models_dir);
        let (names, found) = match explicit {
            Some(path) if !is_name(path) => return existing(path),
            Some(name) => (name.display().to_string(), pack_in(&folders, name)),
            None => (
                [&PACKS[..], &[PACK_FAMILY]].concat().join(", "),
                [&PACKS[..], &[PACK_FAMILY]]
                    .concat()
                    .iter()
                    .find_map(|name| pack_in(&folders, name.as_ref())),
            ),
        };
        found.ok_or_else(|| ModelError::NoPack {
            names,
            looked: listed(&folders),
        })
    }

    /// Where packs lie.
    fn pack_folders(&self, models_dir: Option<&Path>) -> Vec<PathBuf> {
        let own_home = self.home.as_ref().map(|home| home.join(".insightface"));
        let in_models = |home: PathBuf| home.join("models");
        [
            models_dir.map(Path::to_path_buf),
            self.insightface_home.clone().map(in_models),
            self.models_dir.clone(),
            self.data_dir().map(in_models),
            own_home.map(in_models),
        ]
        .into_iter()
        .flatten()
        .chain(self.system_data_dirs().map(in_models))
        .collect()
    }
}

/// Whether `model` is a word, which stands for a pack wherever it is, and no path.
fn is_name(model: &Path) -> bool {
    let has_separator = model.to_string_lossy().contains(is_separator);
    !has_separator && matches!(model.components().next(), Some(Component::Normal(_)))
}

/// The folder that a property names, if it is there.
fn existing(path: &Path) -> Result<PathBuf, ModelError> {
    match path.is_dir() {
        true => Ok(path.to_owned()),
        false => Err(ModelError::NoPack {
            names: path.display().to_string(),
            looked: "no other place".to_owned(),
        }),
    }
}

/// The pack `name` in the first of `folders` that has one. An archive may have unpacked into a folder of its own name.
fn pack_in(folders: &[PathBuf], name: &Path) -> Option<PathBuf> {
    let places = folders.iter().flat_map(|folder| {
        let [flat, family] = [folder.join(name), folder.join(PACK_FAMILY).join(name)];
        let [flat_twice, family_twice] = [flat.join(name), family.join(name)];
        [flat, flat_twice, family, family_twice]
    });
    places.into_iter().find(|place| has_networks(place))
}

/// Whether a folder has ONNX files.
fn has_networks(folder: &Path) -> bool {
    let mut entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.any(|entry| entry.path().extension().is_some_and(|end| end == "onnx"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::touch;
    use super::*;

    #[test]
    fn packs_are_searched_in_order_and_the_originals_default_first() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        let around = Surroundings {
            models_dir: Some(at("variable")),
            data_home: Some(at("data")),
            home: Some(at("home")),
            insightface_home: Some(at("original")),
            ..Default::default()
        };
        let property = at("property");
        let find = |name: Option<&str>| around.pack(name.map(Path::new), Some(&property)).ok();
        let named = || find(Some("buffalo_s"));
        assert_eq!((find(None), named()), (None, None));
        // Each file put in place takes precedence over those before it; the second column says for whom.
        for (place, is_named) in [
            ("variable/insightface/det.onnx", false),
            ("property/insightface/det.onnx", false),
            ("home/.insightface/models/buffalo_s/det.onnx", true),
            ("data/facetrack/models/insightface/buffalo_s/det.onnx", true),
            ("data/facetrack/models/buffalo_s/det.onnx", true),
            ("variable/insightface/buffalo_s/buffalo_s/det.onnx", true),
            ("variable/insightface/buffalo_s/det.onnx", true),
            ("variable/buffalo_s/buffalo_s/det.onnx", true),
            ("variable/buffalo_s/det.onnx", true),
            ("original/models/buffalo_s/det.onnx", true),
            ("property/insightface/buffalo_s/det.onnx", true),
            ("property/buffalo_s/det.onnx", true),
            (
                "home/.insightface/models/antelopev2/antelopev2/det.onnx",
                false,
            ),
            ("home/.insightface/models/buffalo_l/det.onnx", false),
        ] {
            let file = touch(at(place));
            let folder = file.parent().map(Path::to_path_buf);
            assert_eq!(find(None), folder, "{place}");
            assert_eq!(named() == folder, is_named, "{place}");
        }
    }

    #[test]
    fn a_path_to_a_pack_ends_the_search() {
        let root = tempfile::tempdir().unwrap();
        let around = Surroundings {
            data_dirs: vec!["/nowhere/share".into()],
            ..Default::default()
        };
        let folder = root.path().join("own");
        let find = |path: &Path| around.pack(Some(path), None);
        let error = find(&folder).unwrap_err().to_string();
        assert!(
            error.contains("own") && error.contains("`model`"),
            "{error}"
        );
        let file = touch(folder.join("det.onnx"));
        assert_eq!(find(&folder).unwrap(), folder);
        assert!(find(&file).is_err(), "a file is no pack");
        // What is no word is a path, though it be of one part.
        for path in [".", "..", "buffalo_l/"] {
            let around = Surroundings {
                models_dir: Some(root.path().join("own/models")),
                ..Default::default()
            };
            touch(root.path().join("own/models/det.onnx"));
            touch(root.path().join("own/models/buffalo_l/det.onnx"));
            let found = around.pack(Some(Path::new(path)), None).ok();
            let there = Path::new(path).is_dir().then(|| PathBuf::from(path));
            assert_eq!(found, there);
        }
        let error = find(Path::new("buffalo_l")).unwrap_err().to_string();
        assert!(
            error.contains("buffalo_l") && error.contains("/nowhere/share/facetrack/models"),
            "{error}"
        );
    }

    #[test]
    fn a_missing_pack_says_how_to_come_by_one() {
        let around = Surroundings {
            home: Some("/nowhere/home".into()),
            ..Default::default()
        };
        for explicit in [None, Some("buffalo_l"), Some("/nowhere/pack")] {
            let error = around.pack(explicit.map(Path::new), None).unwrap_err();
            assert!(matches!(error, ModelError::NoPack { .. }), "{error}");
            let error = error.to_string();
            for part in [
                explicit.unwrap_or(
                    "buffalo_l, antelopev2, buffalo_m, buffalo_s, buffalo_sc, insightface",
                ),
                "`facetrack fetch insightface`",
                "~/.insightface/models",
                "non-commercial",
                "`model`",
            ] {
                assert!(error.contains(part), "{part} is not in: {error}");
            }
            assert!(!error.contains("`facetrack fetch`"), "{error}");
        }
    }
}
