// SPDX-License-Identifier: MPL-2.0
//! The part of the videos that one of several runs tracks.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

/// The value of `--shard`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ShardOption {
    /// The number of runs; the scheduler says which one this is.
    Count(u64),
    One(Shard),
}

/// One of several runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Shard {
    index: u64,
    count: u64,
}

impl Shard {
    const ALL: Self = Self { index: 0, count: 1 };

    /// Returns true if there are other shards.
    pub(crate) fn is_one_of_several(self) -> bool {
        self.count > 1
    }

    /// Indexes from 0 and from 1 both work, as schedulers count either way: N is the same as 0.
    fn new(index: u64, count: u64) -> Result<Self, String> {
        if count == 0 || index > count {
            return Err(format!(
                "{index}/{count} is not a part of {count}: use 0/N to N-1/N, or 1/N to N/N"
            ));
        }
        Ok(Self {
            index: index % count,
            count,
        })
    }

    /// Returns true if a video is in this shard.
    pub(crate) fn has(self, id: &str) -> bool {
        let hash = Sha256::digest(id.as_bytes());
        let number = hash
            .first_chunk()
            .map_or(0, |bytes| u64::from_be_bytes(*bytes));
        number % self.count == self.index
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-of-{}", self.index, self.count)
    }
}

impl FromStr for ShardOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            let number = text.trim().parse::<u64>();
            number.map_err(|_| "write it as I/N or N, such as 3/8".to_owned())
        };
        match text.split_once('/') {
            Some((index, count)) => Shard::new(number(index)?, number(count)?).map(Self::One),
            None => number(text).map(Self::Count),
        }
    }
}

/// The shard that the option or the scheduler's variables give.
///
/// # Errors
/// Returns an error if the option and the variables contradict each other.
pub(super) fn of(
    option: Option<ShardOption>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Shard, String> {
    let number = |name: &str| variable(name).and_then(|text| text.trim().parse::<u64>().ok());
    let count = match option {
        Some(ShardOption::One(shard)) => return Ok(shard),
        Some(ShardOption::Count(count)) => Some(count),
        None => None,
    };
    if let Some(shard) = of_slurm(count, &number) {
        return shard;
    }
    for name in ["JOB_COMPLETION_INDEX", "HQ_TASK_ID"] {
        match (number(name), count) {
            (Some(index), Some(count)) => return Shard::new(index, count),
            (Some(_), None) => {
                return Err(format!(
                    "{name} is set, but not the number of tasks. Add --shard N, or --shard 1/1 to track everything here"
                ));
            }
            (None, _) => (),
        }
    }
    match count {
        None => Ok(Shard::ALL),
        Some(count) => Err(format!(
            "--shard {count} needs the number of this task from a scheduler. Write --shard I/{count}"
        )),
    }
}

/// The shard of a task of a Slurm array.
fn of_slurm(
    count: Option<u64>,
    number: &impl Fn(&str) -> Option<u64>,
) -> Option<Result<Shard, String>> {
    let id = number("SLURM_ARRAY_TASK_ID")?;
    let tasks = number("SLURM_ARRAY_TASK_COUNT");
    let Some(count) = count.or(tasks) else {
        return Some(Err(
            "SLURM_ARRAY_TASK_COUNT is not set. Add --shard I/N".to_owned()
        ));
    };
    // A Slurm array may have any numbers. Those that are not usable as an index are refused.
    let limits = number("SLURM_ARRAY_TASK_MIN").zip(number("SLURM_ARRAY_TASK_MAX"));
    let size = limits.map(|(min, max)| max.saturating_sub(min).saturating_add(1));
    let has_gaps = size.is_some_and(|size| size != count);
    let shard = Shard::new(id, count).ok();
    let shard = shard.filter(|_| !has_gaps || Some(count) != tasks);
    Some(shard.ok_or_else(|| {
        format!("the tasks of the Slurm array are not numbered 0 to {count}. Add --shard N with the number of all tasks, or number them so")
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_text(option: Option<&str>, variables: &[(&str, &str)]) -> Result<(u64, u64), String> {
        let option = option.map(str::parse).transpose()?;
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        of(option, variable).map(|shard| (shard.index, shard.count))
    }

    #[test]
    fn shards_from_options_and_schedulers() {
        let slurm = |id| [("SLURM_ARRAY_TASK_ID", id), ("SLURM_ARRAY_TASK_COUNT", "4")];
        assert_eq!(of_text(None, &[]), Ok((0, 1)));
        assert_eq!(of_text(Some("3/8"), &slurm("2")), Ok((3, 8)));
        assert_eq!(of_text(Some("8/8"), &[]), Ok((0, 8)));
        assert_eq!(of_text(None, &slurm("2")), Ok((2, 4)));
        assert_eq!(of_text(Some("9"), &slurm("7")), Ok((7, 9)));
        assert_eq!(of_text(None, &slurm("4")), Ok((0, 4)));
        assert_eq!(
            of_text(Some("9"), &[("JOB_COMPLETION_INDEX", "0")]),
            Ok((0, 9))
        );
        assert_eq!(of_text(Some("9"), &[("HQ_TASK_ID", "9")]), Ok((0, 9)));
        let array = |tasks: [&'static str; 2]| {
            let limits = [
                ("SLURM_ARRAY_TASK_MIN", "0"),
                ("SLURM_ARRAY_TASK_MAX", tasks[1]),
            ];
            let ids = [
                ("SLURM_ARRAY_TASK_ID", "0"),
                ("SLURM_ARRAY_TASK_COUNT", tasks[0]),
            ];
            [ids, limits].concat()
        };
        assert_eq!(of_text(None, &array(["2", "1"])), Ok((0, 2)));
        assert!(of_text(None, &array(["2", "2"])).is_err());
        assert_eq!(of_text(Some("8"), &array(["2", "7"])), Ok((0, 8)));
        for (option, variables) in [
            (Some("9/8"), &[][..]),
            (Some("0/0"), &[]),
            (Some("x"), &[]),
            (Some("8"), &[]),
            (None, &[("HQ_TASK_ID", "1")]),
            (None, &[("JOB_COMPLETION_INDEX", "1")]),
            (None, &slurm("7")),
        ] {
            assert!(
                of_text(option, variables).is_err(),
                "{option:?} {variables:?}"
            );
        }
    }

    #[test]
    fn shards_are_disjoint_and_complete() {
        let count = 7;
        for id in (0..500).map(|number| format!("folder/clip{number}")) {
            let owners = (0..count).filter(|index| {
                Shard {
                    index: *index,
                    count,
                }
                .has(&id)
            });
            assert_eq!(owners.count(), 1, "{id}");
        }
    }
}
