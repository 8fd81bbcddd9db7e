// SPDX-License-Identifier: MPL-2.0
//! Selects faces.

use std::cmp::Ordering;
use std::str::FromStr;

use super::frame::Face;
use crate::faces::Contents;

/// The faces that are exported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Selection {
    /// Every face.
    All,
    /// One face per frame: of those in it, the one whose boxes have the largest area, summed over
    /// the whole record.
    Largest,
    /// The faces with these ids.
    Ids(Vec<u32>),
}

impl FromStr for Selection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => return Ok(Self::All),
            "largest" => return Ok(Self::Largest),
            _ => (),
        }
        let number = |id: &str| id.strip_prefix("obj_").unwrap_or(id).parse().ok();
        let ids: Option<Vec<u32>> = text.split(',').map(number).collect();
        ids.map(Self::Ids)
            .ok_or_else(|| "it is not all, largest, or ids such as obj_1,obj_3".to_owned())
    }
}

impl Selection {
    /// The ids in the record that are selected in some frame.
    ///
    /// # Errors
    /// Returns an error if an id is not in the record.
    pub(super) fn ids(&self, contents: &Contents) -> Result<Vec<u32>, String> {
        let known: Vec<u32> = contents.areas.keys().copied().collect();
        let Self::Ids(ids) = self else {
            return Ok(known);
        };
        match ids.iter().find(|id| !known.contains(id)) {
            Some(missing) if known.is_empty() => {
                Err(format!("there is no obj_{missing}, and no other face"))
            }
            Some(missing) => Err(format!("there is no obj_{missing}, but {}", names(&known))),
            None => Ok(ids.clone()),
        }
    }

    /// The selected faces of a frame.
    pub(super) fn of(&self, mut faces: Vec<Face>, contents: &Contents) -> Vec<Face> {
        match self {
            Self::All => faces,
            Self::Ids(ids) => {
                faces.retain(|face| ids.contains(&face.id));
                faces
            }
            Self::Largest => {
                let area = |face: &Face| contents.areas.get(&face.id);
                let faces = faces.into_iter();
                let largest = faces.max_by(|a, b| {
                    let order = area(a).partial_cmp(&area(b));
                    order.unwrap_or(Ordering::Equal)
                });
                largest.into_iter().collect()
            }
        }
    }
}

/// The ids as the record has them.
pub(super) fn names(ids: &[u32]) -> String {
    let names: Vec<String> = ids.iter().map(|id| format!("obj_{id}")).collect();
    names.join(", ")
}
