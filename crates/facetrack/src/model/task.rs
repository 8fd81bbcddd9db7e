// SPDX-License-Identifier: MPL-2.0
//! MediaPipe's `face_landmarker.task`: a zip of three networks and the canonical face.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use zip::ZipArchive;

use super::file::{self, MAX_SIZE};
use super::{ModelError, ModelFile, format_error};

/// Names of the parts, in a bundle as in a folder.
const FACE_DETECTOR: &str = "face_detector.tflite";
const FACE_LANDMARKS_DETECTOR: &str = "face_landmarks_detector.tflite";
const FACE_BLENDSHAPES: &str = "face_blendshapes.tflite";
const GEOMETRY_METADATA: &str = "geometry_pipeline_metadata_landmarks.binarypb";

/// Name of the format in messages.
const FORMAT: &str = "MediaPipe task";

/// The parts of a `face_landmarker.task`, as bytes.
#[derive(Debug, Clone)]
pub struct Bundle {
    /// Finds faces: a `.tflite` file.
    pub face_detector: Vec<u8>,
    /// Finds landmarks of a face: a `.tflite` file.
    pub face_landmarks_detector: Vec<u8>,
    /// Measures blendshapes from landmarks: a `.tflite` file.
    pub face_blendshapes: Vec<u8>,
    /// The canonical face for the pose, as MediaPipe's `GeometryPipelineMetadata` message. A folder
    /// of networks may lack it.
    pub geometry_metadata: Option<Vec<u8>>,
    /// The files read: the bundle, or the parts of a folder.
    pub files: Vec<ModelFile>,
}

impl Bundle {
    /// Reads a bundle, or a folder with its unpacked parts.
    ///
    /// # Errors
    /// Returns [`ModelError::Missing`] for a folder that lacks a network, [`ModelError::Read`] when
    /// the system refuses to read, [`ModelError::Hash`] for a file with a name of the manifest and
    /// other bytes, [`ModelError::Format`] if it is not a bundle.
    pub fn open(path: &Path) -> Result<Self, ModelError> {
        if path.is_dir() {
            return Self::from_folder(path);
        }
        let (bytes, _) = file::read(path, FORMAT)?;
        Self::from_bytes(path, &bytes)
    }

    /// Reads a bundle from its bytes; `path` is for messages.
    ///
    /// # Errors
    /// Returns [`ModelError::Format`] if they are not a bundle.
    pub fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Self, ModelError> {
        let format = |reason| format_error(path, FORMAT, reason);
        let archive = ZipArchive::new(Cursor::new(bytes));
        let mut archive = archive.map_err(|error| format(error.to_string()))?;
        let mut bundle = Self::from_parts(|name| unpack(&mut archive, name).map_err(format))?;
        bundle.files.push(ModelFile::of(path, bytes));
        Ok(bundle)
    }

    /// Path of the part `name` of the bundle, or of the folder, at `path`, for messages.
    #[must_use]
    pub fn part_path(path: &Path, name: &str) -> PathBuf {
        if path.is_dir() {
            return path.join(name);
        }
        format!("{} ({name})", path.display()).into()
    }

    fn from_folder(folder: &Path) -> Result<Self, ModelError> {
        let mut files = Vec::new();
        let bundle = Self::from_parts(|name| {
            let (bytes, file) = file::read(&folder.join(name), FORMAT)?;
            files.push(file);
            Ok(bytes)
        })?;
        Ok(Self { files, ..bundle })
    }

    fn from_parts(
        mut part: impl FnMut(&str) -> Result<Vec<u8>, ModelError>,
    ) -> Result<Self, ModelError> {
        Ok(Self {
            face_detector: part(FACE_DETECTOR)?,
            face_landmarks_detector: part(FACE_LANDMARKS_DETECTOR)?,
            face_blendshapes: part(FACE_BLENDSHAPES)?,
            geometry_metadata: match part(GEOMETRY_METADATA) {
                Ok(bytes) => Some(bytes),
                Err(ModelError::Missing { .. }) => None,
                Err(error) => return Err(error),
            },
            files: Vec::new(),
        })
    }
}

fn unpack(archive: &mut ZipArchive<Cursor<&[u8]>>, name: &str) -> Result<Vec<u8>, String> {
    let entry = archive
        .by_name(name)
        .map_err(|error| format!("{name}: {error}"))?;
    facetrack_assets::file::read_from(entry, MAX_SIZE).map_err(|error| format!("{name}: {error}"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    /// An archive with a member of 3 bytes that claims to have `claim`.
    fn lying(claim: u32) -> Vec<u8> {
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default();
        archive.start_file(FACE_DETECTOR, options).unwrap();
        archive.write_all(b"abc").unwrap();
        let mut bytes = archive.finish().unwrap().into_inner();
        // The uncompressed size, in the header of the member and in the directory.
        for (signature, offset) in [(b"PK\x03\x04", 22), (b"PK\x01\x02", 24)] {
            let header = bytes.windows(4).position(|four| four == signature);
            let at = header.unwrap() + offset;
            assert_eq!(bytes[at..at + 4], 3u32.to_le_bytes());
            bytes[at..at + 4].copy_from_slice(&claim.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn memory_is_not_taken_by_claim() {
        let bytes = lying(MAX_SIZE as u32);
        let mut archive = ZipArchive::new(Cursor::new(&bytes[..])).unwrap();
        let content = unpack(&mut archive, FACE_DETECTOR).unwrap();
        assert_eq!(content, b"abc");
        assert!(content.capacity() < 1024, "{}", content.capacity());
    }
}
