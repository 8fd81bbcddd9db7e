// SPDX-License-Identifier: MPL-2.0
//! The one description of every option: what the elements' properties, the environment's defaults, the checks and the
//! README's tables are made of.
//!
//! A table is a slice of [`OptionSpec`]. [`Settings`] holds what somebody set; [`Settings::resolve`] adds what the
//! environment says and the built-in defaults. The environment comes in as a function, so nothing here reads the
//! process's own.

pub mod facetrack;
pub mod facetrackoverlay;
pub mod markdown;
mod spec;
pub mod trackjsonload;
pub mod trackjsonsink;
pub mod trackudpsink;
mod unused;
mod value;

pub use spec::{
    Access, Choice, EnvDefault, EnvRule, EnvWarning, Kind, OptionSpec, env, env_number_of, env_of,
    env_square_of, env_switch, kebab, parse_switch,
};
pub use unused::Unused;
pub use value::{FromValue, Value};
pub(crate) use value::{choices, flags};

/// What was set explicitly, by a table.
#[derive(Debug, Clone)]
pub struct Settings {
    table: &'static [OptionSpec],
    values: Vec<Option<Value>>,
}

impl PartialEq for Settings {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.table, other.table) && self.values == other.values
    }
}

impl Settings {
    /// Nothing is set yet.
    pub fn new(table: &'static [OptionSpec]) -> Self {
        Self {
            table,
            values: vec![None; table.len()],
        }
    }

    /// Sets an option, or makes it unset (`None`).
    ///
    /// # Panics
    /// When the table has no option of that name.
    pub fn set(&mut self, name: &str, value: Option<Value>) {
        let index = index_of(self.table, name);
        self.values[index] = value;
    }

    /// What was set; the built-in default with `engine` otherwise; `None` where that is unset.
    ///
    /// # Panics
    /// When the table has no option of that name.
    pub fn get(&self, name: &str, engine: Option<&str>) -> Option<Value> {
        let index = index_of(self.table, name);
        self.values[index]
            .clone()
            .or_else(|| self.table[index].default_with(engine))
    }

    /// What was set explicitly; `None` where nothing was.
    ///
    /// # Panics
    /// When the table has no option of that name.
    pub fn explicit<T: FromValue>(&self, name: &str) -> Option<T> {
        let index = index_of(self.table, name);
        T::from_value(Some(self.values[index].as_ref()?))
    }

    /// The options that were set for other engines than `engine`; `None` without any.
    pub fn unused(&self, engine: &'static str) -> Option<Unused> {
        let set = std::iter::zip(self.table, &self.values).filter(|(_, value)| value.is_some());
        Unused::new(engine, set.map(|(option, _)| option))
    }

    /// The value of every option: what was set, else what `env` says to `engine`, else the built-in default. Variables
    /// that can't be understood are listed and do not count.
    pub fn resolve(
        &self,
        engine: Option<&str>,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> (Resolved, Vec<EnvWarning>) {
        let mut warnings = Vec::new();
        let values = std::iter::zip(self.table, &self.values)
            .map(|(option, set)| {
                set.clone()
                    .or_else(|| option.env_default(engine, env, &mut warnings))
                    .or_else(|| option.default_with(engine))
            })
            .collect();
        let resolved = Resolved {
            table: self.table,
            values,
        };
        (resolved, warnings)
    }
}

/// The value of every option of a table.
#[derive(Debug, Clone)]
pub struct Resolved {
    table: &'static [OptionSpec],
    values: Vec<Option<Value>>,
}

impl Resolved {
    /// The value of an option as the type that it is used as: `bool`, `i32`, `u32`, `f32`, `f64`, `String`, or
    /// `Option<String>`, `Option<PathBuf>` where it may be unset.
    ///
    /// # Panics
    /// When the table has no such option, or one of another type.
    pub fn get<T: FromValue>(&self, name: &str) -> T {
        let value = self.values[index_of(self.table, name)].as_ref();
        T::from_value(value).unwrap_or_else(|| panic!("option `{name}` is of another type"))
    }

    /// Every option that has a value, in the table's order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static OptionSpec, &Value)> {
        std::iter::zip(self.table, &self.values)
            .filter_map(|(option, value)| Some((option, value.as_ref()?)))
    }
}

fn index_of(table: &[OptionSpec], name: &str) -> usize {
    table
        .iter()
        .position(|option| option.name == name)
        .unwrap_or_else(|| panic!("no option `{name}` in the table"))
}

#[cfg(test)]
mod tests;
