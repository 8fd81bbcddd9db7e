// SPDX-License-Identifier: MPL-2.0
//! The 3-D face that is fitted.

use nalgebra::Vector3;

/// Number of landmarks. In [`POINTS`] they come before the points of the eyes.
pub(super) const LANDMARKS: usize = 66;

/// The tip of the nose, the origin of the model.
pub(super) const NOSE: usize = 30;

/// The outline of the face.
pub(super) const OUTLINE: std::ops::Range<usize> = 0..17;

/// The ends of the outline, next to the ears. The centre of the head is between them.
pub(super) const EARS: [usize; 2] = [0, 16];

/// Corners of the eyes, each pair from right to left in the image of a face: right eye, left eye.
pub(super) const EYES: [[usize; 2]; 2] = [[36, 39], [42, 45]];

/// Landmarks that move only with the head. The pose is solved with them: `contour_pts` in
/// `FaceInfo.__init__`.
pub(super) const CONTOUR: [usize; 14] = [0, 1, 8, 15, 16, 27, 28, 29, 30, 31, 32, 33, 34, 35];

/// The same for the network of 30 points, which several landmarks share: model −1.
pub(super) const COARSE_CONTOUR: [usize; 8] = [0, 2, 8, 14, 16, 27, 30, 33];

/// The points on the right side of the face and in its middle, each with its index in [`POINTS`] and
/// the index of its mirror image, which is itself in the middle. Source: `face_3d` in
/// `Tracker.__init__`.
const HALF: [([usize; 2], [f32; 3]); 40] = [
    ([0, 16], [0.45517698, 0.30089578, -0.76442945]),
    ([1, 15], [0.44899884, 0.16699584, -0.765143]),
    ([2, 14], [0.43743154, 0.02265548, -0.7392672]),
    ([3, 13], [0.41503343, -0.088941455, -0.74794745]),
    ([4, 12], [0.3891236, -0.23238003, -0.7047884]),
    ([5, 11], [0.3346301, -0.3612654, -0.6155876]),
    ([6, 10], [0.2637251, -0.46000972, -0.49147922]),
    ([7, 9], [0.16241622, -0.55803716, -0.33944517]),
    ([8, 8], [0.0, -0.621079, -0.28729478]),
    ([17, 26], [0.38552997, 0.40280056, -0.3100311]),
    ([18, 25], [0.32219666, 0.46443912, -0.25055805]),
    ([19, 24], [0.2540976, 0.4642038, -0.20817772]),
    ([20, 23], [0.18687543, 0.44706073, -0.14529982]),
    ([21, 22], [0.120880984, 0.4235663, -0.11075716]),
    ([27, 27], [0.0, 0.2933326, -0.1375821]),
    ([28, 28], [0.0, 0.1948287, -0.06915811]),
    ([29, 29], [0.0, 0.10384402, -0.00915182]),
    ([30, 30], [0.0, 0.0, 0.0]),
    ([31, 35], [0.08062635, -0.041276067, -0.13416104]),
    ([32, 34], [0.046439346, -0.057675224, -0.10299063]),
    ([33, 33], [0.0, -0.06875312, -0.09054535]),
    ([36, 45], [0.31590518, 0.2983375, -0.2851074]),
    ([37, 44], [0.27525234, 0.3127219, -0.24455824]),
    ([38, 43], [0.1763945, 0.31190717, -0.21920536]),
    ([39, 42], [0.13122973, 0.28444737, -0.23423915]),
    ([40, 47], [0.18412495, 0.26017958, -0.22659078]),
    ([41, 46], [0.27943355, 0.26736307, -0.24844144]),
    ([48, 52], [0.121155255, -0.20898867, -0.1606063]),
    ([49, 51], [0.041356307, -0.1944842, -0.09615988]),
    ([50, 50], [0.0, -0.20518017, -0.08329922]),
    ([55, 55], [0.0, -0.34374258, -0.113925986]),
    ([56, 54], [0.064137794, -0.32537785, -0.15892404]),
    ([57, 53], [0.1323254, -0.29085797, -0.18706787]),
    ([58, 62], [0.18148157, -0.24323931, -0.23128499]),
    ([59, 61], [0.08399951, -0.23971775, -0.15525647]),
    ([60, 60], [0.0, -0.25605804, -0.09506195]),
    ([64, 64], [0.0, -0.26494586, -0.112349965]),
    ([65, 63], [0.07403607, -0.25068992, -0.17734647]),
    ([66, 67], [0.25799, 0.27608, -0.219999]),
    ([68, 69], [0.25799, 0.27608, -0.32457098]),
];

/// The 66 landmarks, then pupils and centres of the eyeballs, right before left. x points to the
/// right side of the face, y up, z out of it; the unit is about the width of a face.
pub(crate) const POINTS: [[f32; 3]; 70] = {
    let mut points = [[0.0; 3]; 70];
    let mut i = 0;
    while i < HALF.len() {
        let ([right, left], [x, y, z]) = HALF[i];
        points[left] = [-x, y, z];
        points[right] = [x, y, z];
        i += 1;
    }
    points
};

/// A point of [`POINTS`].
pub(super) fn point(index: usize) -> Vector3<f64> {
    Vector3::from(POINTS[index]).cast()
}
