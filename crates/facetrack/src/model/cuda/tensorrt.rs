// SPDX-License-Identifier: MPL-2.0
//! Options of ONNX Runtime's TensorRT provider.

use smart_default::SmartDefault;

use super::{CudaProvider, KeysAndValues, switch};
use crate::model::TensorSpec;

/// Colour planes of an image: the only extent that an axis can have even if the file leaves it
/// open.
const CHANNELS: usize = 3;

/// Range of the extent of an axis: TensorRT builds its engine for it, and tunes it for the usual
/// extent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extents {
    /// Minimum.
    pub least: usize,
    /// The most frequent extent.
    pub usual: usize,
    /// Maximum.
    pub most: usize,
}

impl Extents {
    /// A fixed extent.
    pub const fn fixed(length: usize) -> Self {
        Self {
            least: length,
            usual: length,
            most: length,
        }
    }
}

/// Range of the extents of an input `[images, channels, height, width]` that the file leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, SmartDefault)]
pub struct InputExtents {
    /// Images of a run.
    #[default(Extents::fixed(1))]
    pub images: Extents,
    /// Height and width, px.
    #[default(Extents::fixed(1))]
    pub side: Extents,
}

impl InputExtents {
    /// The axes of `input`; `None` if the file fixes all of them, or if it is not an image.
    fn axes(&self, input: &TensorSpec) -> Option<[Extents; 4]> {
        let shape: [Option<usize>; 4] = input.shape.as_slice().try_into().ok()?;
        let mut axes = [self.images, Extents::fixed(CHANNELS), self.side, self.side];
        for (axis, extent) in axes.iter_mut().zip(shape) {
            *axis = extent.map_or(*axis, Extents::fixed);
        }
        shape.contains(&None).then_some(axes)
    }
}

impl CudaProvider {
    /// Keys and values for the TensorRT provider of a network with these `inputs`; `None` if it is
    /// not used.
    ///
    /// Without the range of each open axis, TensorRT would build another engine whenever the number
    /// of faces reaches a new maximum, which takes from seconds to minutes. It keeps nothing on
    /// disk.
    pub fn tensorrt_options(&self, inputs: &[TensorSpec]) -> Option<KeysAndValues> {
        if !self.tuning.tensorrt {
            return None;
        }
        let mut options = vec![
            ("device_id", self.device.to_string()),
            ("trt_max_workspace_size", self.memory_limit.to_string()),
            ("trt_fp16_enable", switch(self.tuning.fp16)),
            ("trt_engine_cache_enable", switch(false)),
            ("trt_timing_cache_enable", switch(false)),
        ];
        let ranges: Vec<(&str, [Extents; 4])> = inputs
            .iter()
            .filter_map(|input| Some((input.name.as_str(), self.input.axes(input)?)))
            .collect();
        if ranges.is_empty() {
            return Some(options);
        }
        type Length = fn(&Extents) -> usize;
        let profile: [(&str, Length); 3] = [
            ("trt_profile_min_shapes", |axis| axis.least),
            ("trt_profile_opt_shapes", |axis| axis.usual),
            ("trt_profile_max_shapes", |axis| axis.most),
        ];
        for (key, length) in profile {
            let shape = |(name, axes): &(&str, [Extents; 4])| {
                let lengths = axes.map(|axis| length(&axis).to_string());
                format!("{name}:{}", lengths.join("x"))
            };
            let shapes: Vec<String> = ranges.iter().map(shape).collect();
            options.push((key, shapes.join(",")));
        }
        Some(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::cuda::Coverage;
    use crate::model::placement::CudaTuning;

    fn options(tuning: CudaTuning, shape: &[Option<usize>]) -> Vec<(&'static str, String)> {
        let provider = CudaProvider {
            device: 2,
            memory_limit: 1 << 20,
            tuning,
            coverage: Coverage::Most,
            input: InputExtents {
                images: Extents {
                    least: 1,
                    usual: 2,
                    most: 64,
                },
                side: Extents {
                    least: 32,
                    usual: 640,
                    most: 768,
                },
            },
        };
        let input = TensorSpec {
            name: "input.1".to_owned(),
            shape: shape.to_vec(),
        };
        provider.tensorrt_options(&[input]).unwrap()
    }

    fn wanted() -> CudaTuning {
        CudaTuning {
            tensorrt: true,
            ..CudaTuning::default()
        }
    }

    #[test]
    fn an_engine_is_built_for_every_shape_that_comes() {
        for (shape, ranges) in [
            (
                [None, Some(3), None, None],
                Some(["1x3x32x32", "2x3x640x640", "64x3x768x768"]),
            ),
            (
                [Some(1), Some(3), None, None],
                Some(["1x3x32x32", "1x3x640x640", "1x3x768x768"]),
            ),
            (
                [None, None, Some(192), Some(192)],
                Some(["1x3x192x192", "2x3x192x192", "64x3x192x192"]),
            ),
            ([Some(1), Some(3), Some(640), Some(640)], None),
        ] {
            let options = options(wanted(), &shape);
            let found = ["min", "opt", "max"].map(|which| {
                let key = format!("trt_profile_{which}_shapes");
                let option = options.iter().find(|(own, _)| *own == key);
                option.map(|(_, value)| value.clone())
            });
            let expected = match ranges {
                Some(ranges) => ranges.map(|range| Some(format!("input.1:{range}"))),
                None => [const { None }; 3],
            };
            assert_eq!(found, expected, "{shape:?}");
        }
    }

    #[test]
    fn it_gets_the_options_and_writes_nothing() {
        let half = CudaTuning {
            fp16: true,
            ..wanted()
        };
        for (tuning, fp16) in [(wanted(), "0"), (half, "1")] {
            let expected = [
                ("device_id", "2"),
                ("trt_max_workspace_size", "1048576"),
                ("trt_fp16_enable", fp16),
                ("trt_engine_cache_enable", "0"),
                ("trt_timing_cache_enable", "0"),
            ];
            let found = options(tuning, &[Some(1), Some(2)]);
            assert_eq!(found, expected.map(|(key, value)| (key, value.to_owned())));
        }
    }
}
