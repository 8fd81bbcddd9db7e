// SPDX-License-Identifier: MPL-2.0
//! Options of the elements: one table for each element, with one row for each option.
//!
//! A row has the name and the description of an option, and the field of the settings that it sets.
//! The default of an option is the default of this field. Properties, the values from the
//! environment, the options in a record and the tables in the documentation are made from the rows.

mod description;
mod environment;
mod facetrack;
mod facetrackblur;
mod facetrackoverlay;
mod field;
mod row;
mod text;
mod trackjsonload;
mod trackjsonsink;
mod trackudpsink;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use gst::glib;
use gst::prelude::*;
use serde_json::{Map, Value};

pub(crate) use self::description::Description;
pub use self::environment::table as environment_table;
pub(crate) use self::environment::{EnvWarning, Environment};
pub(crate) use self::facetrack::{FaceTrackSettings, PostMessages, Smoothing, device};
pub(crate) use self::facetrackblur::BlurSettings;
pub(crate) use self::facetrackoverlay::OverlaySettings;
use self::row::rows;
pub(crate) use self::row::{Reading, Row};
pub use self::text::{display, expected, parse};
pub(crate) use self::trackjsonload::{LoadSettings, MatchBy, OnMismatch};
pub(crate) use self::trackjsonsink::{FillBy, Format, JsonSinkSettings};
pub(crate) use self::trackudpsink::UdpSettings;
use ::facetrack::engine::EngineKind;
use ::facetrack_assets::lock::lock;

/// Settings with defaults, which may depend on the engine.
pub(crate) trait Defaults: Clone + Default + 'static {
    /// The rows that set them.
    const ROWS: &'static [Row<Self>];

    /// The name of the element.
    const ELEMENT: &'static str;

    /// When an option takes effect that may not change while the element runs.
    const TAKES_EFFECT: &'static str = "when the element next goes from READY to PAUSED";

    /// Checks those options that are lists or other texts.
    ///
    /// # Errors
    /// Returns the name of an invalid option, and the reason.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// The defaults with an engine.
    fn of_engine(_kind: EngineKind) -> Self {
        Self::default()
    }

    /// The engine whose defaults are shown.
    fn engine(&self) -> EngineKind {
        EngineKind::default()
    }
}

/// Returns the properties of an element class, which is never freed: its options and its read-only
/// properties.
pub(crate) fn properties<S: Defaults, E>(readings: &[Reading<E>]) -> &'static [glib::ParamSpec] {
    let options = S::ROWS.iter().map(Row::param_spec);
    let readings = readings.iter().map(Reading::param_spec);
    Vec::leak(options.chain(readings).collect())
}

/// Sets the property of `element` with a GObject id. Posts a warning if the value is invalid, or not
/// used before the element starts again.
pub(crate) fn set_property<S: Defaults>(
    element: &impl IsA<gst::Element>,
    options: &Mutex<Options<S>>,
    id: usize,
    value: &glib::Value,
) {
    let old = lock(options).clone();
    set_checked(element, options, id, value);
    if is_running(element.upcast_ref()) {
        let late = lock(options).late_changes(&old);
        warn(element, late);
    }
}

/// Sets the property of `element` with a GObject id. Posts a warning if the value is invalid.
pub(crate) fn set_checked<S: Defaults>(
    element: &impl IsA<gst::Element>,
    options: &Mutex<Options<S>>,
    id: usize,
    value: &glib::Value,
) {
    let changed = if is_running(element.upcast_ref()) {
        lock(options).change_running(id, value)
    } else {
        lock(options).change(id, value)
    };
    warn(element, changed.err());
}

/// Posts a warning of the settings of `element`, if there is one.
pub(crate) fn warn(element: &impl IsA<gst::Element>, warning: Option<String>) {
    if let Some(warning) = warning {
        gst::element_warning!(element, gst::LibraryError::Settings, ("{warning}"));
    }
}

/// Returns true from the change to PAUSED on. Options are read in this change. A sink stays in READY
/// until it has its first frame.
fn is_running(element: &gst::Element) -> bool {
    let (current, pending) = (element.current_state(), element.pending_state());
    current > gst::State::Ready || current == gst::State::Ready && pending > gst::State::Ready
}

/// The value of the property of `element` with a GObject id: an option or a reading.
pub(crate) fn property<S: Defaults, E>(
    element: &E,
    options: &Mutex<Options<S>>,
    readings: &[Reading<E>],
    id: usize,
) -> glib::Value {
    match id.checked_sub(S::ROWS.len() + 1) {
        Some(index) => (readings[index].value)(element),
        None => lock(options).property(id),
    }
}

/// A counter as the value of a reading.
pub(crate) fn count(counter: &AtomicU64) -> glib::Value {
    let count = counter.load(Ordering::Relaxed);
    (count.min(i32::MAX as u64) as u32).to_value()
}

/// The options that shape a record, by name.
pub(crate) fn shaping<S: Defaults>(settings: &S) -> Map<String, Value> {
    named_values(S::ROWS, settings)
}

/// The values of those `rows` that results depend on, by name.
fn named_values<S: Defaults>(
    rows: impl IntoIterator<Item = &'static Row<S>>,
    settings: &S,
) -> Map<String, Value> {
    let mut settings = settings.clone();
    let rows = rows.into_iter().filter(|row| row.changes_results);
    let values = rows.map(|row| (row.name.to_owned(), text::json(&row.value(&mut settings))));
    values.filter(|(_, value)| !value.is_null()).collect()
}

/// The settings of an element, and which of them were set explicitly.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Options<S> {
    pub settings: S,
    /// Indexes of rows.
    explicit: BTreeSet<usize>,
}

impl<S: Defaults> Options<S> {
    /// Sets the property with a GObject id, which count from 1. A string that is NULL or empty makes
    /// the option unset.
    pub(crate) fn set_property(&mut self, id: usize, value: &glib::Value) {
        let index = id - 1;
        let row = &S::ROWS[index];
        let text = value.get::<Option<&str>>();
        if text.is_ok_and(|text| text.is_none_or(str::is_empty)) {
            self.explicit.remove(&index);
            row.set_value(&mut self.settings, &row.value(&mut S::default()));
        } else {
            self.explicit.insert(index);
            row.set_value(&mut self.settings, value);
        }
    }

    /// Sets the property with a GObject id and checks the settings.
    ///
    /// # Errors
    /// Returns the reason why the new value is invalid.
    pub(crate) fn change(&mut self, id: usize, value: &glib::Value) -> Result<(), String> {
        let before = self.settings.check();
        self.set_property(id, value);
        // A change of another option does not repeat the error.
        self.settings.check().or_else(|reason| match before {
            Err(known) if known == reason => Ok(()),
            _ => Err(reason),
        })
    }

    /// Sets the property of an element that runs. An invalid value does not replace the one in use.
    ///
    /// # Errors
    /// Returns the reason why the new value is invalid.
    fn change_running(&mut self, id: usize, value: &glib::Value) -> Result<(), String> {
        let old = self.clone();
        self.change(id, value).inspect_err(|_| *self = old)
    }

    /// A warning of the options that are not as in `old`, the options in use, and that cannot change
    /// while the element runs; `None` if there are none.
    pub(crate) fn late_changes(&self, old: &Self) -> Option<String> {
        let late = (1..).zip(S::ROWS).filter(|(id, row)| {
            let value = |options: &Self| text::json(&options.property(*id));
            !row.is_mutable_in_playing() && value(self) != value(old)
        });
        let names: Vec<_> = late.map(|(_, row)| format!("`{}`", row.name)).collect();
        (!names.is_empty()).then(|| {
            format!(
                "a change of {} takes effect {}. Until then, the earlier value is used",
                names.join(", "),
                S::TAKES_EFFECT
            )
        })
    }

    /// The value of the property with a GObject id.
    pub(crate) fn property(&self, id: usize) -> glib::Value {
        let index = id - 1;
        let row = &S::ROWS[index];
        let mut shown = if self.explicit.contains(&index) {
            self.settings.clone()
        } else {
            S::of_engine(self.settings.engine())
        };
        row.value(&mut shown)
    }

    /// The value of every option: as set, from the environment, or the default, in this order.
    /// Variables with invalid values are listed and ignored.
    pub(crate) fn resolve(
        &self,
        engine: Option<EngineKind>,
        environment: &Environment,
    ) -> (S, Vec<EnvWarning>) {
        let mut resolved = engine.map_or_else(S::default, S::of_engine);
        let mut settings = self.settings.clone();
        let mut warnings = Vec::new();
        for (index, row) in S::ROWS.iter().enumerate() {
            let value = if self.explicit.contains(&index) {
                Some(row.value(&mut settings))
            } else {
                environment.value_of(row, engine, &mut resolved, &mut warnings)
            };
            if let Some(value) = value {
                row.set_value(&mut resolved, &value);
            }
        }
        (resolved, warnings)
    }

    /// The options that were set explicitly and that results depend on, by name.
    pub(crate) fn explicit(&self) -> Map<String, Value> {
        named_values(self.explicit_rows(), &self.settings)
    }

    fn explicit_rows(&self) -> impl Iterator<Item = &'static Row<S>> {
        self.explicit.iter().map(|index| &S::ROWS[*index])
    }
}

#[cfg(test)]
pub(crate) mod tests;
