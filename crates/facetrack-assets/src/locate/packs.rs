// SPDX-License-Identifier: MPL-2.0
//! Finds packs of InsightFace's networks.

use std::fs;
use std::path::{Component, Path, PathBuf, is_separator};

use super::{NotFound, SearchPaths};

/// Folder of a collection of models that holds packs, and networks outside of packs.
const PACK_FAMILY: &str = "insightface";

/// Names of packs to search: the packs that InsightFace publishes, its default first, then the
/// others, better ones first; and the family.
const PACKS: [&str; 8] = [
    "buffalo_l",
    "antelopev2",
    "buffalo_m",
    "buffalo_s",
    "buffalo_sc",
    "raccoon_l",
    "raccoon_s",
    PACK_FAMILY,
];

impl SearchPaths {
    /// Returns the folder of a pack of InsightFace's networks.
    ///
    /// `explicit` is the folder, or the name of a pack: a word without a slash. A pack is searched
    /// in `models_dir`, `models/` of `insightface_home`, `collection`, the user's data folder,
    /// `~/.insightface/models` and the system's data folders; in each flat, then in the folder
    /// `insightface`. Without a name, the first published pack that exists is used, otherwise a
    /// folder `insightface` with networks in it.
    ///
    /// # Errors
    /// Returns [`NotFound::Pack`], with the folders looked in.
    pub fn pack(&self, explicit: Option<&Path>) -> Result<PathBuf, NotFound> {
        let names = match explicit {
            Some(path) if is_name(path) => vec![path],
            Some(path) if path.is_dir() => return Ok(path.to_owned()),
            Some(path) => {
                return Err(NotFound::Pack {
                    names: vec![path.to_owned()],
                    looked: Vec::new(),
                });
            }
            None => PACKS.map(Path::new).to_vec(),
        };
        let folders = self.pack_folders();
        let mut found = names.iter().filter_map(|name| pack_in(&folders, name));
        found.next().ok_or_else(|| NotFound::Pack {
            names: names.iter().map(|name| name.to_path_buf()).collect(),
            looked: folders.clone(),
        })
    }

    /// Folders to search for packs.
    fn pack_folders(&self) -> Vec<PathBuf> {
        let own_home = self.home.as_ref().map(|home| home.join(".insightface"));
        let in_models = |home: &PathBuf| home.join("models");
        let homes = self.data_dir.iter().chain(&own_home);
        let homes = homes.chain(&self.system_data_dirs);
        let folders = self.models_dir.iter().cloned();
        folders
            .chain(self.insightface_home.iter().map(in_models))
            .chain(self.collection.clone())
            .chain(homes.map(in_models))
            .collect()
    }
}

/// Returns true if `model` is a word, which names a pack in any folder, and not a path.
fn is_name(model: &Path) -> bool {
    let has_separator = model.to_string_lossy().contains(is_separator);
    !has_separator && matches!(model.components().next(), Some(Component::Normal(_)))
}

/// The pack `name` in the first of `folders` that has one. An archive may have unpacked into a
/// folder of its own name.
fn pack_in(folders: &[PathBuf], name: &Path) -> Option<PathBuf> {
    let places = folders.iter().flat_map(|folder| {
        let [flat, family] = [folder.join(name), folder.join(PACK_FAMILY).join(name)];
        let [flat_twice, family_twice] = [flat.join(name), family.join(name)];
        [flat, flat_twice, family, family_twice]
    });
    places.into_iter().find(|place| has_networks(place))
}

/// Returns true if a folder has ONNX files.
fn has_networks(folder: &Path) -> bool {
    let mut entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.any(|entry| entry.path().extension().is_some_and(|end| end == "onnx"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{paths, touch};
    use super::*;

    #[test]
    fn packs_are_searched_in_order_and_the_originals_default_first() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        let around = SearchPaths {
            models_dir: Some(at("first")),
            ..paths(&[
                ("FACETRACK_MODELS_DIR", &at("variable")),
                ("XDG_DATA_HOME", &at("data")),
                ("HOME", &at("home")),
                ("INSIGHTFACE_HOME", &at("original")),
            ])
        };
        let find = |name: Option<&str>| around.pack(name.map(Path::new)).ok();
        let named = || find(Some("buffalo_s"));
        assert_eq!((find(None), named()), (None, None));
        // Each file put in place takes precedence over those before it; the second column says for
        // whom.
        for (place, is_named) in [
            ("variable/insightface/det.onnx", false),
            ("first/insightface/det.onnx", false),
            ("home/.insightface/models/buffalo_s/det.onnx", true),
            ("data/facetrack/models/insightface/buffalo_s/det.onnx", true),
            ("data/facetrack/models/buffalo_s/det.onnx", true),
            ("variable/insightface/buffalo_s/buffalo_s/det.onnx", true),
            ("variable/insightface/buffalo_s/det.onnx", true),
            ("variable/buffalo_s/buffalo_s/det.onnx", true),
            ("variable/buffalo_s/det.onnx", true),
            ("original/models/buffalo_s/det.onnx", true),
            ("first/insightface/buffalo_s/det.onnx", true),
            ("first/buffalo_s/det.onnx", true),
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
        let around = paths(&[("XDG_DATA_DIRS", "/nowhere/share".as_ref())]);
        let folder = root.path().join("own");
        let find = |path: &Path| around.pack(Some(path));
        let error = find(&folder).unwrap_err().to_string();
        assert!(error.contains("own"), "{error}");
        let file = touch(folder.join("det.onnx"));
        assert_eq!(find(&folder).unwrap(), folder);
        assert!(find(&file).is_err(), "a file is no pack");
        // A name that is not a single word is a path, even if it has only one part.
        for path in [".", "..", "buffalo_l/"] {
            let around = SearchPaths {
                collection: Some(root.path().join("own/models")),
                ..SearchPaths::default()
            };
            touch(root.path().join("own/models/det.onnx"));
            touch(root.path().join("own/models/buffalo_l/det.onnx"));
            let found = around.pack(Some(Path::new(path))).ok();
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
    fn a_missing_pack_is_an_error_with_every_name_and_folder() {
        let around = SearchPaths {
            home: Some("/nowhere/home".into()),
            ..SearchPaths::default()
        };
        for (explicit, names) in [
            (
                None,
                "buffalo_l, antelopev2, buffalo_m, buffalo_s, buffalo_sc, raccoon_l, raccoon_s, insightface",
            ),
            (Some("buffalo_l"), "buffalo_l"),
            (Some("/nowhere/pack"), "/nowhere/pack"),
        ] {
            let error = around.pack(explicit.map(Path::new)).unwrap_err();
            assert!(matches!(error, NotFound::Pack { .. }), "{error}");
            assert!(error.to_string().contains(names), "{error}");
        }
    }
}
