# SPDX-License-Identifier: MPL-2.0
"""Names that metadata and records share. This module needs no other package."""

# Names of OpenSeeFace's features, in the order of its packets; l and r are sides of the face.
FEATURES = (
    "eye_l",
    "eye_r",
    "eyebrow_steepness_l",
    "eyebrow_updown_l",
    "eyebrow_quirk_l",
    "eyebrow_steepness_r",
    "eyebrow_updown_r",
    "eyebrow_quirk_r",
    "mouth_corner_updown_l",
    "mouth_corner_inout_l",
    "mouth_corner_updown_r",
    "mouth_corner_inout_r",
    "mouth_open",
    "mouth_wide",
)
