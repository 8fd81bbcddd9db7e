// SPDX-License-Identifier: MPL-2.0
//! Notes on licences that restrict the use of a file.

use facetrack_assets::manifest::KnownFile;

/// Lists the `files` that are not for commercial use; `None` if there are none.
pub(crate) fn not_for_commerce<'a>(
    files: impl IntoIterator<Item = &'a KnownFile>,
) -> Option<String> {
    let names: Vec<_> = files
        .into_iter()
        .filter(|file| file.non_commercial)
        .map(|file| &*file.name)
        .collect();
    (!names.is_empty()).then(|| format!("Not licensed for commercial use: {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use facetrack_assets::manifest;

    #[test]
    fn the_surrey_face_model_is_not_for_commerce() {
        let told = not_for_commerce(&manifest::manifest().files);
        let files = "sfm_shape_3448.bin, expression_blendshapes_3448.bin, ";
        assert!(told.is_some_and(|text| text.contains(files)));
        assert_eq!(not_for_commerce(manifest::known("ibug_to_sfm.txt")), None);
    }
}
