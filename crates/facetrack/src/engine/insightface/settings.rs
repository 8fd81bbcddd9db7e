// SPDX-License-Identifier: MPL-2.0
//! Settings of this engine.

use smart_default::SmartDefault;
use strum::{IntoStaticStr, VariantArray};

use super::scrfd;
use crate::engine::EngineError;
use crate::words::kebab;

/// Side of the larger input of the detector by default, px.
pub const DET_SIZE: usize = 640;

/// Maximum side of the detector's input, px. ONNX Runtime takes about 100 bytes per pixel.
pub const MAX_DET_SIZE: usize = 4096;

/// Task of a network of a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Module {
    /// Finds faces.
    Detection,
    /// Network for 106 landmarks.
    #[strum(serialize = "landmark_2d_106")]
    Landmark2d106,
    /// Network for 68 landmarks in 3-D and the head pose.
    #[strum(serialize = "landmark_3d_68")]
    Landmark3d68,
    /// Network for age and gender.
    GenderAge,
    /// Network for the embedding.
    Recognition,
}

impl Module {
    /// Every module.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// InsightFace's name of the task.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The modules in a list, separated by commas or spaces; `None` for an empty list, which stands for
/// all.
///
/// # Errors
/// Returns a message with the word that is not a module, and the list of modules.
pub fn modules(list: &str) -> Result<Option<Vec<Module>>, String> {
    let words = list.split([',', ' ']).filter(|word| !word.is_empty());
    let modules = words.map(module).collect::<Result<Vec<_>, _>>()?;
    Ok((!modules.is_empty()).then_some(modules))
}

fn module(word: &str) -> Result<Module, String> {
    let mut modules = Module::ALL.iter().copied();
    let found = modules.find(|module| kebab(module.name()) == kebab(word));
    found.ok_or_else(|| {
        let names = Module::ALL.iter().map(|module| module.name());
        let names = names.collect::<Vec<_>>().join(", ");
        format!("{word:?} is not a module, expected one of: {names}")
    })
}

/// Settings of this engine.
#[derive(Debug, Clone, PartialEq, SmartDefault)]
pub struct Settings {
    /// Modules that run, where the pack has them; `None` for all. The detector always runs.
    pub allowed_modules: Option<Vec<Module>>,
    /// Side of the detector's input, px: a multiple of 32. 0 stands for two inputs, of 128 and 640
    /// px, whose faces are put together, as `FaceAnalysis.prepare(det_size=None)` does.
    pub det_size: usize,
    /// True to measure the embedding, which identifies people.
    pub embedding: bool,
}

impl Settings {
    /// The networks that are to be opened, where the pack has them.
    pub fn wanted(&self) -> Vec<Module> {
        let is_wanted = |module: &Module| match module {
            Module::Detection => true,
            Module::Recognition => self.embedding,
            _ => self.allows(*module),
        };
        Module::ALL.iter().copied().filter(is_wanted).collect()
    }

    /// Returns true if `module` may run.
    pub fn allows(&self, module: Module) -> bool {
        let allowed = self.allowed_modules.as_ref();
        allowed.is_none_or(|allowed| allowed.contains(&module))
    }

    /// # Errors
    /// Returns [`EngineError::Config`] for settings that contradict one another or can't be used.
    pub(super) fn check(&self) -> Result<(), EngineError> {
        let size = self.det_size;
        if size > MAX_DET_SIZE || !size.is_multiple_of(scrfd::MULTIPLE) {
            let reason = format!(
                "{size} is not a multiple of {} up to {MAX_DET_SIZE}, which SCRFD needs",
                scrfd::MULTIPLE
            );
            return Err(EngineError::config("det_size", reason));
        }
        if self.embedding && !self.allows(Module::Recognition) {
            let reason = format!(
                "it needs the module {}, which is not allowed",
                Module::Recognition.name()
            );
            return Err(EngineError::config("embedding", reason));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_listed_by_insightfaces_names() {
        for (list, expected) in [
            ("", None),
            (" , ", None),
            ("detection", Some(vec![Module::Detection])),
            (
                "detection,landmark_2d_106",
                Some(vec![Module::Detection, Module::Landmark2d106]),
            ),
            (
                "Landmark-3D-68  genderage, recognition",
                Some(vec![
                    Module::Landmark3d68,
                    Module::GenderAge,
                    Module::Recognition,
                ]),
            ),
        ] {
            assert_eq!(modules(list), Ok(expected), "{list:?}");
        }
    }

    #[test]
    fn a_module_that_does_not_exist_is_reported_with_those_that_do() {
        let told = modules("detection age").unwrap_err();
        assert!(told.contains("\"age\""), "{told}");
        for module in Module::ALL {
            assert!(told.contains(module.name()), "{told}");
        }
    }
}
