// SPDX-License-Identifier: MPL-2.0
//! Rows of a table of options.

use gst::glib;
use gst::glib::ParamFlags;

use super::Defaults;
use super::description::Description;
use super::field::Field;
use super::text;
use facetrack::engine::{EngineKind, Setting};

/// An option that sets a field of the settings `S`.
pub(crate) struct Row<S: 'static> {
    pub name: &'static str,
    /// One sentence of at most 120 characters; the page of the element has the details.
    pub blurb: &'static str,
    unit: &'static str,
    range: (f64, f64),
    flags: ParamFlags,
    /// Setting of the option; engines that do not use it ignore the option.
    pub setting: Option<Setting>,
    /// True if results depend on the option. Records and keys list only such options.
    pub changes_results: bool,
    /// Reports an error in a text.
    check: fn(&str) -> Result<(), String>,
    field: fn(&mut S) -> &mut dyn Field,
}

impl<S: Defaults> Row<S> {
    /// An option that may change in NULL and READY, of any value that its type has; numbers are not
    /// negative.
    pub(crate) const fn new(
        name: &'static str,
        blurb: &'static str,
        field: fn(&mut S) -> &mut dyn Field,
    ) -> Self {
        Self {
            name,
            blurb,
            unit: "",
            range: (0.0, i32::MAX as f64),
            flags: ParamFlags::READWRITE.union(gst::PARAM_FLAG_MUTABLE_READY),
            setting: None,
            changes_results: true,
            check: |_| Ok(()),
            field,
        }
    }

    /// An option that may change at any time.
    pub(crate) const fn playing(mut self) -> Self {
        self.flags = ParamFlags::READWRITE.union(gst::PARAM_FLAG_MUTABLE_PLAYING);
        self
    }

    pub(crate) const fn is_mutable_in_playing(&self) -> bool {
        self.flags.contains(gst::PARAM_FLAG_MUTABLE_PLAYING)
    }

    /// A number from `min` to `max`, with a unit or "".
    pub(crate) const fn range(mut self, min: f64, max: f64, unit: &'static str) -> Self {
        self.range = (min, max);
        self.unit = unit;
        self
    }

    /// An option for the engines that use `setting`.
    pub(crate) const fn of(mut self, setting: Setting) -> Self {
        self.setting = Some(setting);
        self
    }

    /// An option that no result depends on, such as the folder of the models: their hashes count.
    pub(crate) const fn cosmetic(mut self) -> Self {
        self.changes_results = false;
        self
    }

    /// A text that is rejected if `check` returns an error.
    pub(crate) const fn checked(mut self, check: fn(&str) -> Result<(), String>) -> Self {
        self.check = check;
        self
    }

    /// The value in `settings`, which are not changed.
    pub(crate) fn value(&self, settings: &mut S) -> glib::Value {
        (self.field)(settings).value()
    }

    pub(crate) fn set_value(&self, settings: &mut S, value: &glib::Value) {
        (self.field)(settings).set_value(value);
    }

    pub(crate) fn param_spec(&self) -> glib::ParamSpec {
        let description = Description::new(self.name, self.long_blurb(), self.flags, self.range);
        (self.field)(&mut S::default()).param_spec(&description)
    }

    /// Reads a value from text.
    ///
    /// # Errors
    /// Returns the expected form of the text.
    pub(crate) fn parse(&self, text: &str) -> Result<glib::Value, String> {
        (self.check)(text)?;
        text::parse(&self.param_spec(), text)
    }

    /// The blurb with the unit, and for an option of some engines with their names and defaults.
    fn long_blurb(&self) -> String {
        let mut blurb = self.blurb.to_owned();
        if !self.unit.is_empty() {
            blurb += &format!(" [{}]", self.unit);
        }
        let Some(setting) = self.setting else {
            return blurb;
        };
        let default_of = |kind| text::display(&self.value(&mut S::of_engine(kind)));
        let usual = default_of(EngineKind::default());
        let engines = engines_with(setting);
        for kind in &engines {
            let default = default_of(*kind);
            if default != usual {
                blurb += &format!(" (default of {}: {default})", kind.name());
            }
        }
        blurb + &format!(" (engines: {})", names(&engines))
    }
}

/// A table of options: `name: field, function(arguments), … => description`, with functions of
/// [`Row`].
macro_rules! rows {
    ($(
        $name:literal: $($field:ident).+ $(, $function:ident $(($($argument:tt)*))?)* =>
            $blurb:literal,
    )*) => {
        &[$(
            Row::<Self>::new($name, $blurb, |s| &mut s.$($field).+)
                $(.$function($($($argument)*)?))*,
        )*]
    };
}

pub(super) use rows;

/// The engines that use a setting.
pub(super) fn engines_with(setting: Setting) -> Vec<EngineKind> {
    let mut engines = EngineKind::ALL.to_vec();
    engines.retain(|kind| kind.uses(setting));
    engines
}

pub(super) fn names(engines: &[EngineKind]) -> String {
    let names: Vec<_> = engines.iter().map(|kind| kind.name()).collect();
    names.join(", ")
}

/// A property that reads the state of the element `E`.
pub(crate) struct Reading<E: 'static> {
    name: &'static str,
    blurb: &'static str,
    param_spec: fn(&Description) -> glib::ParamSpec,
    pub value: fn(&E) -> glib::Value,
}

impl<E> Reading<E> {
    /// A property of the type that `param_spec` makes.
    pub(crate) const fn new(
        name: &'static str,
        param_spec: fn(&Description) -> glib::ParamSpec,
        value: fn(&E) -> glib::Value,
    ) -> Self {
        Self {
            name,
            blurb: "",
            param_spec,
            value,
        }
    }

    /// A property that reads a text.
    pub(crate) const fn text(name: &'static str, value: fn(&E) -> glib::Value) -> Self {
        Self::new(name, |description| description.string(None), value)
    }

    /// A property that reads a counter.
    pub(crate) const fn count(name: &'static str, value: fn(&E) -> glib::Value) -> Self {
        Self::new(name, |description| description.uint(0), value)
    }

    /// Describes the property.
    pub(crate) const fn blurb(mut self, blurb: &'static str) -> Self {
        self.blurb = blurb;
        self
    }

    pub(crate) fn param_spec(&self) -> glib::ParamSpec {
        let range = (0.0, f64::from(i32::MAX));
        let blurb = self.blurb.to_owned();
        let description = Description::new(self.name, blurb, ParamFlags::READABLE, range);
        (self.param_spec)(&description)
    }
}
