// SPDX-License-Identifier: MPL-2.0
//! The layers of a network, and which rows of their inputs they need.

use std::ops::Range;

use crate::kernel::dense::Weights;
use crate::kernel::depthwise::Filters;
use crate::kernel::{Activation, padded};

/// Maximum number of rows and of columns of an image.
const MAX_EXTENT: usize = 1 << 14;

/// Maximum number of channels of an image: more than four times as many as the largest known
/// network has.
pub(crate) const MAX_CHANNELS: usize = 1 << 12;

/// Maximum number of floats of an image, and of all images that are kept at a time: 1 GiB.
pub(crate) const MAX_FLOATS: usize = 1 << 28;

/// Maximum number of rows of a kernel.
pub(crate) const MAX_KERNEL: usize = 8;

/// Maximum number of rows or columns of zeros at each side of an image.
pub(crate) const MAX_PADDING: usize = 64;

/// Number of a tensor.
pub(crate) type Id = usize;

/// Extents of a tensor. A matrix is an image of one row, with a pixel for each of its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub height: usize,
    pub width: usize,
    pub channels: usize,
    /// Channels in memory.
    pub stored: usize,
    /// True if each row has its channels one after the other.
    pub is_planar: bool,
}

impl Shape {
    /// The same size with another number of channels.
    fn with_channels(self, channels: usize) -> Self {
        Self {
            channels,
            stored: padded(channels),
            is_planar: false,
            ..self
        }
    }

    /// Returns true if an image of this shape may be kept.
    pub(crate) fn is_allowed(&self) -> bool {
        let extents = 1..=MAX_EXTENT;
        extents.contains(&self.height)
            && extents.contains(&self.width)
            && self.height * self.width <= MAX_FLOATS / self.stored.max(1)
    }

    /// The extent along an axis of batch, channels, height and width.
    pub(crate) fn extent(&self, axis: usize) -> Option<usize> {
        [1, self.channels, self.height, self.width]
            .get(axis)
            .copied()
    }

    /// Number of elements.
    pub(crate) fn len(&self) -> usize {
        self.height * self.width * self.channels
    }
}

/// Size, steps and padding of a kernel: [vertical, horizontal].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub kernel: [usize; 2],
    pub stride: [usize; 2],
    /// Zeros before the image.
    pub before: [usize; 2],
    /// Zeros behind the image.
    pub behind: [usize; 2],
}

impl Window {
    /// A window of one pixel.
    pub(crate) const PIXEL: Self = Self {
        kernel: [1; 2],
        stride: [1; 2],
        before: [0; 2],
        behind: [0; 2],
    };

    /// Extent of the output along `axis`; `None` if the kernel is larger than the image.
    fn extent(&self, axis: usize, input: usize) -> Option<usize> {
        let whole = input + self.before[axis] + self.behind[axis];
        Some(whole.checked_sub(self.kernel[axis])? / self.stride[axis] + 1)
    }

    /// Rows of the image that the output row `row` depends on.
    pub(crate) fn rows(&self, row: usize, height: usize) -> Range<usize> {
        let first = row * self.stride[0];
        let within = |row: usize| row.saturating_sub(self.before[0]).min(height);
        within(first)..within(first + self.kernel[0])
    }
}

/// An extent that may depend on the image.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Extent {
    Fixed(usize),
    /// The extent of a tensor along an axis of batch, channels, height and width.
    Of(Id, usize),
    /// The extent of the input times a number.
    Times(f32),
    /// The extent that follows from the number of elements and the other extents.
    Rest,
}

/// Method of enlarging an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interpolation {
    /// Takes the pixel whose position, rounded down, is the same.
    Nearest,
    /// Interpolates linearly; the centres of the corner pixels keep their positions.
    AlignedCorners,
}

/// The element-wise operators of two tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Sub,
    Mul,
    Div,
}

impl Arithmetic {
    /// The result for two elements.
    #[inline(always)]
    pub(crate) fn of(self, a: f32, b: f32) -> f32 {
        match self {
            Self::Add => a + b,
            Self::Sub => a - b,
            Self::Mul => a * b,
            Self::Div => a / b,
        }
    }
}

/// Axis along which a matrix is reduced, and the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reduction {
    /// The mean of each column.
    MeanOfRows,
    /// The mean of each row.
    MeanOfColumns,
    /// The sum of each row.
    SumOfColumns,
}

/// An operator. All of them are followed by an [`Activation`] if their layer has one.
#[derive(Debug, Clone)]
pub(crate) enum Operator {
    /// The input of the network with this number.
    Load(usize),
    /// A convolution; the second input, if any, is added before the activation.
    Dense(Weights, Window),
    /// A convolution with one filter for each channel.
    Depthwise(Filters, Window),
    /// A constant matrix times a matrix; the second input, if any, is added. The constant has a
    /// pixel for each of its rows, and the number that is added to all of them as a last channel.
    Mix {
        constant: Vec<f32>,
        rows: usize,
    },
    /// The largest of each window.
    MaxPool(Window),
    /// The mean of each channel.
    Mean,
    /// Channels of an image, in this order.
    Select(Vec<usize>),
    /// The sum of two images.
    Add,
    /// An image times a number for each channel.
    Scale,
    /// Images with their channels one behind the other, and zeros up to this number of channels.
    Concat(usize),
    /// An image of this height and width.
    Resize(Interpolation, [Extent; 2]),
    /// Only the activation.
    Identity,
    /// Each element times a number plus a number.
    Affine(f32, f32),
    /// clip(alpha · x + beta, 0, 1).
    HardSigmoid(f32, f32),
    /// 1 / (1 + exp(−x)).
    Sigmoid,
    /// The square root.
    Sqrt,
    /// Each pixel less its mean, with a variance of 1, times a factor for each channel.
    Normalize {
        scale: Vec<f32>,
        epsilon: f32,
    },
    /// The rows of a matrix behind constant ones.
    Prepend(Vec<f32>),
    /// Some rows of a matrix.
    Rows(usize, usize),
    /// Combines two matrices element by element. The second may have a single row or column.
    Binary(Arithmetic),
    Reduce(Reduction),
}

/// An operator with its tensors.
#[derive(Debug, Clone)]
pub(crate) struct Layer {
    pub operator: Operator,
    pub activation: Activation,
    pub inputs: Vec<Id>,
    pub output: Id,
}

impl Layer {
    /// The shape of the output; `None` if the inputs do not fit, or if it is too large.
    pub(crate) fn shape(&self, shape_of: impl Fn(Id) -> Option<Shape>) -> Option<Shape> {
        let inputs = self.inputs.iter().map(|id| shape_of(*id));
        let inputs = inputs.collect::<Option<Vec<_>>>()?;
        let yielded = match &self.operator {
            Operator::Resize(_, extents) => resized(*inputs.first()?, *extents, shape_of),
            _ => self.yielded(&inputs),
        };
        yielded.filter(Shape::is_allowed)
    }

    /// The shape of the output for these shapes of inputs.
    fn yielded(&self, inputs: &[Shape]) -> Option<Shape> {
        let (input, rest) = inputs.split_first()?;
        let input = *input;
        match &self.operator {
            Operator::Load(_) | Operator::Resize(..) => None,
            Operator::Dense(weights, window) => {
                let yielded = windowed(input, window, weights.columns())?;
                (weights.stored() == input.stored && can_be_added(rest, yielded)).then_some(yielded)
            }
            Operator::Depthwise(filters, window) => {
                let yielded = windowed(input, window, input.channels)?;
                (filters.channels() == input.channels).then_some(yielded)
            }
            Operator::MaxPool(window) => windowed(input, window, input.channels),
            Operator::Mix { constant, rows } => {
                let is_product = constant.len() == rows * (input.width + 1) && input.height == 1;
                let yielded = Shape {
                    width: *rows,
                    ..input
                };
                (is_product && can_be_added(rest, yielded)).then_some(yielded)
            }
            Operator::Mean => Some(Shape {
                height: 1,
                width: 1,
                ..input
            }),
            Operator::Select(channels) => {
                let is_inside = channels.iter().all(|channel| *channel < input.channels);
                is_inside.then(|| input.with_channels(channels.len()))
            }
            Operator::Add => (rest == [input]).then_some(input),
            Operator::Scale => {
                let factors = Shape {
                    height: 1,
                    width: 1,
                    ..input
                };
                (rest == [factors]).then_some(input)
            }
            Operator::Concat(channels) => {
                let is_same =
                    |part: &Shape| (part.height, part.width) == (input.height, input.width);
                let sum: usize = inputs.iter().map(|part| part.channels).sum();
                let fits = sum <= *channels && inputs.iter().all(is_same);
                fits.then(|| input.with_channels(*channels))
            }
            Operator::Identity
            | Operator::Affine(..)
            | Operator::HardSigmoid(..)
            | Operator::Sigmoid
            | Operator::Sqrt => Some(input),
            _ => self.matrix(input, rest),
        }
    }

    /// The shape that an operator of matrices yields.
    fn matrix(&self, input: Shape, rest: &[Shape]) -> Option<Shape> {
        match &self.operator {
            Operator::Normalize { scale, .. } => (scale.len() == input.stored).then_some(input),
            Operator::Prepend(rows) => {
                let count = rows.len() / input.channels;
                Some(Shape {
                    width: input.width + count,
                    ..input
                })
            }
            Operator::Rows(first, last) => {
                let is_inside = first < last && *last <= input.width;
                is_inside.then(|| Shape {
                    width: last - first,
                    ..input
                })
            }
            Operator::Binary(_) => {
                let other = rest.first()?;
                let fits = other.height == input.height
                    && [1, input.width].contains(&other.width)
                    && [1, input.channels].contains(&other.channels);
                fits.then_some(input)
            }
            Operator::Reduce(Reduction::MeanOfRows) => Some(Shape { width: 1, ..input }),
            _ => Some(input.with_channels(1)),
        }
    }

    /// Rows of the input with this index and shape that the output row `row` depends on.
    pub(crate) fn rows(
        &self,
        index: usize,
        row: usize,
        input: &Shape,
        output: &Shape,
    ) -> Range<usize> {
        match (&self.operator, index) {
            (
                Operator::Dense(_, window)
                | Operator::Depthwise(_, window)
                | Operator::MaxPool(window),
                0,
            ) => window.rows(row, input.height),
            (Operator::Mean, _) | (Operator::Scale, 1) => 0..input.height,
            (Operator::Resize(interpolation, _), _) => {
                let (near, far, _) = interpolation.neighbours(row, input.height, output.height);
                near..far + 1
            }
            _ => row..row + 1,
        }
    }

    /// Number of packed weights.
    pub(crate) fn weights(&self) -> usize {
        match &self.operator {
            Operator::Dense(weights, _) => weights.len(),
            Operator::Depthwise(filters, _) => filters.len(),
            _ => 0,
        }
    }

    /// The window of its first input.
    pub(crate) fn window(&self) -> Option<&Window> {
        match &self.operator {
            Operator::Dense(_, window)
            | Operator::Depthwise(_, window)
            | Operator::MaxPool(window) => Some(window),
            _ => None,
        }
    }
}

/// The shape that a window yields.
fn windowed(input: Shape, window: &Window, channels: usize) -> Option<Shape> {
    Some(Shape {
        height: window.extent(0, input.height)?,
        width: window.extent(1, input.width)?,
        ..input.with_channels(channels)
    })
}

/// Returns true if the tensor in `added`, if any, can be added to one of the shape `sum`.
fn can_be_added(added: &[Shape], sum: Shape) -> bool {
    let is_same = |own: &Shape| (own.height, own.width) == (sum.height, sum.width);
    added
        .iter()
        .all(|own| is_same(own) && own.channels <= sum.channels)
}

/// The shape of an image after it was enlarged.
fn resized(
    input: Shape,
    [height, width]: [Extent; 2],
    shape_of: impl Fn(Id) -> Option<Shape>,
) -> Option<Shape> {
    let extent = |extent, own| match extent {
        Extent::Fixed(extent) => Some(extent),
        Extent::Times(factor) => Some((own as f32 * factor) as usize),
        Extent::Of(id, axis) => shape_of(id)?.extent(axis),
        Extent::Rest => None,
    };
    Some(Shape {
        height: extent(height, input.height)?,
        width: extent(width, input.width)?,
        ..input
    })
}

impl Interpolation {
    /// The two places of an axis with `input` elements between which the element `at` of `output`
    /// lies, and the weight of the second.
    pub(crate) fn neighbours(self, at: usize, input: usize, output: usize) -> (usize, usize, f32) {
        match self {
            Self::Nearest => {
                let near = (at * input / output.max(1)).min(input - 1);
                (near, near, 0.0)
            }
            Self::AlignedCorners => {
                let scale = match output {
                    0 | 1 => 0.0,
                    _ => (input - 1) as f32 / (output - 1) as f32,
                };
                let place = at as f32 * scale;
                let near = (place as usize).min(input - 1);
                (near, (near + 1).min(input - 1), place - near as f32)
            }
        }
    }
}
