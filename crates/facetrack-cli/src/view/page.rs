// SPDX-License-Identifier: MPL-2.0
//! Pages in HTML. They load nothing from anywhere, and texts of records are never markup.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::{Component, Path};

use data_encoding::BASE64;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

use super::encode::Numbers;

/// Beginning of every page: only files that begin like this are replaced.
pub(crate) const START: &str = "<!doctype html>\n<!-- Written by facetrack view -->\n";

const STYLE: &str = include_str!("page.css");

/// The program of the page of a record.
const SCRIPT: &str = concat!(
    include_str!("theme.js"),
    include_str!("words.js"),
    include_str!("icons.js"),
    include_str!("gestures.js"),
    include_str!("decode.js"),
    include_str!("record.js"),
    include_str!("picture.js"),
    include_str!("timeline.js"),
    include_str!("curves.js"),
    include_str!("people.js"),
    include_str!("inspector.js"),
    include_str!("player.js"),
    include_str!("page.js"),
);

const BODY: &str = include_str!("page.html");

/// Characters that stay as they are in a path of a link.
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// Writes the page of a record.
#[derive(Debug)]
pub(crate) struct RecordPage<W>(W);

impl<W: Write> RecordPage<W> {
    /// Writes the page without its data.
    ///
    /// # Errors
    /// Returns the errors of `out`.
    pub(crate) fn begin(mut out: W, title: &str) -> io::Result<Self> {
        write_head(&mut out, title, SCRIPT)?;
        out.write_all(BODY.as_bytes())?;
        Ok(Self(out))
    }

    /// Adds numbers under a name.
    ///
    /// # Errors
    /// Returns the errors of `out`.
    pub(crate) fn add(&mut self, name: &str, numbers: &Numbers) -> io::Result<()> {
        let text = [b"\">", numbers.text()?.as_bytes(), b"</script>\n"].concat();
        write!(
            self.0,
            "<script type=\"application/octet-stream\" id=\"{name}"
        )?;
        self.0.write_all(&text)
    }

    /// Adds the header, and completes the page.
    ///
    /// # Errors
    /// Returns the errors of `out`.
    pub(crate) fn finish(mut self, header: &Json) -> io::Result<()> {
        // A text of the record must not end the script.
        let header = header.to_string().replace('<', "\\u003c");
        write!(
            self.0,
            "<script type=\"application/json\" id=\"header\">{header}</script>\n\
                <script>{SCRIPT}</script>\n</body>\n</html>\n"
        )?;
        self.0.flush()
    }
}

/// Writes everything before the body. Only `script`, the style and videos are allowed.
///
/// # Errors
/// Returns the errors of `out`.
pub(crate) fn write_head(out: &mut impl Write, title: &str, script: &str) -> io::Result<()> {
    let [script, style] = [script, STYLE].map(hash);
    writeln!(
        out,
        r#"{START}<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src '{script}'; style-src '{style}'; img-src data:; media-src 'self' file: blob:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{}</title>
<style>{STYLE}</style>
</head>"#,
        escaped(title)
    )
}

/// The source expression of an inline script or style in a content security policy.
fn hash(text: &str) -> String {
    format!("sha256-{}", BASE64.encode(&Sha256::digest(text)))
}

/// A text as it is written between tags and in attributes.
pub(crate) fn escaped(text: impl Display) -> String {
    let mut escaped = String::new();
    for character in text.to_string().chars() {
        match character {
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '&' => escaped += "&amp;",
            '"' => escaped += "&quot;",
            // No browser shows them, and they can hide others.
            _ if character.is_control() => escaped.push('\u{fffd}'),
            _ => escaped.push(character),
        }
    }
    escaped
}

/// A link from a page in the folder `from` to a file. Both exist.
///
/// # Errors
/// Returns the error of the system.
pub(crate) fn link(from: &Path, to: &Path) -> io::Result<String> {
    let (from, to) = (from.canonicalize()?, to.canonicalize()?);
    let common = std::iter::zip(from.components(), to.components());
    let common = common.take_while(|(from, to)| from == to).count();
    let up = from.components().skip(common).map(|_| "..".to_owned());
    let down = to.components().skip(common).map(encoded);
    Ok(up.chain(down).collect::<Vec<_>>().join("/"))
}

fn encoded(component: Component<'_>) -> String {
    percent_encode(component.as_os_str().as_encoded_bytes(), PATH).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_no_markup() {
        assert_eq!(
            escaped("<b onclick=\"x\">&amp;\u{1b}"),
            "&lt;b onclick=&quot;x&quot;&gt;&amp;amp;\u{fffd}"
        );
        let mut page = Vec::new();
        let begun = RecordPage::begin(&mut page, "</title>").unwrap();
        let header = serde_json::json!({"engine": "</script><script>alert(1)"});
        begun.finish(&header).unwrap();
        let page = String::from_utf8(page).unwrap();
        assert!(page.starts_with(START));
        assert!(page.contains("<title>&lt;/title&gt;</title>"));
        assert!(page.contains(r#"{"engine":"\u003c/script>\u003cscript>alert(1)"}"#));
    }

    #[test]
    fn links_are_relative_and_encoded() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("pages/deep")).unwrap();
        std::fs::create_dir_all(at("clips")).unwrap();
        for (from, name, want) in [
            (
                "pages/deep",
                "clips/a b#1?.mp4",
                "../../clips/a%20b%231%3F.mp4",
            ),
            ("clips", "clips/ü:%.mp4", "%C3%BC%3A%25.mp4"),
        ] {
            std::fs::write(at(name), "").unwrap();
            assert_eq!(link(&at(from), &at(name)).unwrap(), want);
        }
    }
}
