// SPDX-License-Identifier: MPL-2.0
//! Descriptions of properties.

use gst::glib;
use gst::glib::prelude::*;
use gst::glib::translate::{FromGlib, IntoGlib};

/// Name and description of a property.
pub(crate) struct Description {
    name: &'static str,
    nick: String,
    blurb: String,
    flags: glib::ParamFlags,
    range: (f64, f64),
}

impl Description {
    pub(crate) fn new(
        name: &'static str,
        blurb: String,
        flags: glib::ParamFlags,
        range: (f64, f64),
    ) -> Self {
        let mut nick = name.replace('-', " ");
        if let Some(first) = nick.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        Self {
            name,
            nick,
            blurb,
            flags,
            range,
        }
    }

    fn complete<'a, B: ParamSpecBuilderExt<'a>>(&'a self, builder: B) -> B {
        let builder = builder.nick(&self.nick).blurb(&self.blurb);
        builder.flags(self.flags)
    }

    pub(crate) fn boolean(&self, default: bool) -> glib::ParamSpec {
        let spec = glib::ParamSpecBoolean::builder(self.name).default_value(default);
        self.complete(spec).build()
    }

    pub(crate) fn uint(&self, default: u32) -> glib::ParamSpec {
        let spec = glib::ParamSpecUInt::builder(self.name)
            .minimum(self.range.0 as u32)
            .maximum(self.range.1 as u32)
            .default_value(default);
        self.complete(spec).build()
    }

    pub(crate) fn int(&self, default: i32) -> glib::ParamSpec {
        let spec = glib::ParamSpecInt::builder(self.name)
            .minimum(self.range.0 as i32)
            .maximum(self.range.1 as i32)
            .default_value(default);
        self.complete(spec).build()
    }

    pub(crate) fn double(&self, default: f64) -> glib::ParamSpec {
        let spec = glib::ParamSpecDouble::builder(self.name)
            .minimum(self.range.0)
            .maximum(self.range.1)
            .default_value(default);
        self.complete(spec).build()
    }

    pub(crate) fn string(&self, default: impl Into<Option<String>>) -> glib::ParamSpec {
        let default = default.into();
        let spec = glib::ParamSpecString::builder(self.name).default_value(default.as_deref());
        self.complete(spec).build()
    }

    pub(crate) fn structure(&self) -> glib::ParamSpec {
        let spec = glib::ParamSpecBoxed::builder::<gst::Structure>(self.name);
        self.complete(spec).build()
    }

    pub(crate) fn choice<T>(&self, default: T) -> glib::ParamSpec
    where
        T: StaticType + FromGlib<i32> + IntoGlib<GlibType = i32>,
    {
        let spec = glib::ParamSpecEnum::builder_with_default(self.name, default);
        self.complete(spec).build()
    }

    pub(crate) fn flags<T>(&self, default: T) -> glib::ParamSpec
    where
        T: StaticType + FromGlib<u32> + IntoGlib<GlibType = u32>,
    {
        let spec = glib::ParamSpecFlags::builder(self.name).default_value(default);
        self.complete(spec).build()
    }
}
