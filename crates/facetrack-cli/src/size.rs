// SPDX-License-Identifier: MPL-2.0
//! Formats numbers of bytes for people.

const KIB: f64 = 1024.0;

/// `bytes` in the largest unit that leaves at least 1.
pub(crate) fn human(bytes: u64) -> String {
    let bytes = bytes as f64;
    if bytes < KIB {
        return format!("{bytes} B");
    }
    if bytes < KIB * KIB {
        return format!("{:.0} KiB", bytes / KIB);
    }
    format!("{:.1} MiB", bytes / KIB / KIB)
}

#[cfg(test)]
mod tests {
    #[test]
    fn units_change_at_powers_of_1024() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (208_428, "204 KiB"),
            (3_758_596, "3.6 MiB"),
            (29_352_200, "28.0 MiB"),
        ] {
            assert_eq!(super::human(bytes), text);
        }
    }
}
