// SPDX-License-Identifier: MPL-2.0
//! Plans a run for images of one size: the order of the rows of all tensors, and their memory.
//!
//! Layers run in chains. Within a chain, a row is computed as soon as the rows that it depends on
//! are there, the last layer first. So only a few rows of each tensor between two layers of a chain
//! are kept, in a ring, and they stay in the first cache. Only tensors that another chain takes are
//! kept as a whole.

mod bands;

use std::cmp::Reverse;
use std::ops::Range;

use crate::kernel::{BLOCK, Layout, dense};
use crate::layer::{Id, Layer, MAX_FLOATS, Operator, Shape, Window};
use crate::lower::{Input, Layers};
use bands::{Bands, hull};

pub(crate) use bands::owner;

/// Bytes of rows and weights that a chain may need: some of the second cache.
const CHAIN_BYTES: usize = 512 << 10;

/// Maximum number of layers in a chain. The time for planning grows with it.
const CHAIN_LAYERS: usize = 12;

/// Rows of a layer's output to compute.
#[derive(Debug, Clone)]
pub(crate) struct Work {
    pub layer: u32,
    pub rows: Range<u32>,
}

/// Memory of the rows of a tensor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub shape: Shape,
    /// Pixels of zeros before and behind each row.
    pub margins: [usize; 2],
    /// Rows that are kept at a time.
    pub rows: usize,
    /// Number of its buffer.
    pub buffer: usize,
}

impl Place {
    /// Memory layout of a row.
    pub(crate) fn layout(&self) -> Layout {
        Layout {
            width: self.shape.width,
            margins: self.margins,
            stored: self.shape.stored,
            block: if self.shape.is_planar { 1 } else { BLOCK },
        }
    }

    /// Position at which the row begins, margins included.
    pub(crate) fn start(&self, row: usize) -> usize {
        row % self.rows * self.layout().len()
    }
}

/// A step of a run.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Sets the margins of a tensor to 0.
    Clear(Id),
    /// Computes rows.
    Compute(Vec<Work>),
    /// Copies these rows of a tensor for another band, as the copy with this number.
    Send(Id, Range<usize>, usize),
    /// Takes these rows of a tensor from another band.
    Receive(Id, Range<usize>, usize),
}

/// The part of a run that one thread can do.
#[derive(Debug)]
pub(crate) struct Band {
    pub places: Vec<Place>,
    /// Steps of each stage. A stage begins when all bands are done with the one before.
    pub stages: Vec<Vec<Step>>,
    /// Lengths of the buffers.
    pub buffers: Vec<usize>,
}

/// A plan for images of one size.
#[derive(Debug)]
pub(crate) struct Plan {
    pub bands: Vec<Band>,
    /// Lengths of the copies for other bands.
    pub copies: Vec<usize>,
    /// Floats of the longest row.
    pub longest: usize,
    /// Floats of all buffers and copies.
    pub floats: usize,
}

impl Plan {
    /// A plan for inputs with these extents, in as many bands as there are threads, but no more than
    /// make `least_work` products each; `None` if the layers do not fit the inputs.
    pub(crate) fn new(
        network: &Layers,
        inputs: &[[usize; 2]],
        threads: usize,
        least_work: usize,
    ) -> Option<Self> {
        let shapes = shapes(network, inputs)?;
        let count = bands::count(&network.layers, &shapes, threads, least_work);
        let places = places(network, &shapes);
        let chains = chains(network, &shapes, count);
        let lives = lives(network, &chains, &places);
        let mut all = vec![places; count];
        let mut bands = Bands::new(count, chains.len(), network.tensors);
        for (number, chain) in chains.iter().enumerate() {
            let layers = &network.layers[chain.clone()];
            let is_taken = |id: Id| lives[id].last > number;
            let needed = bands.begin(layers, &shapes, is_taken, |id| lives[id].first);
            for (band, (needed, places)) in needed.iter().zip(&mut all).enumerate() {
                let has_margins = |place: &Place| place.margins != [0; 2];
                let outputs = layers.iter().map(|layer| layer.output);
                let cleared =
                    outputs.filter(|id| has_margins(&places[*id]) && !needed[*id].is_empty());
                let steps = &mut bands.steps[band][number];
                steps.extend(cleared.map(Step::Clear));
                let work = order(layers, chain.start, needed, places, &is_taken)?;
                if !work.is_empty() {
                    steps.push(Step::Compute(work));
                }
            }
        }
        for (places, held) in all.iter_mut().zip(&bands.held) {
            keep(places, held, &lives);
        }
        let lengths: Vec<usize> = all[0].iter().map(|place| place.layout().len()).collect();
        let copies = bands.copies.iter().map(|(id, rows)| rows * lengths[*id]);
        let copies: Vec<usize> = copies.collect();
        let bands = all.into_iter().zip(bands.stages());
        let bands = bands.map(|(mut places, stages)| Band {
            buffers: assign(&mut places, &lives),
            places,
            stages,
        });
        let bands: Vec<Band> = bands.collect();
        let buffers = bands.iter().flat_map(|band| &band.buffers);
        let floats = buffers.chain(&copies).sum();
        (floats <= MAX_FLOATS).then_some(Self {
            floats,
            bands,
            copies,
            longest: lengths.into_iter().max().unwrap_or(0),
        })
    }
}

/// The shapes of all tensors.
fn shapes(network: &Layers, inputs: &[[usize; 2]]) -> Option<Vec<Shape>> {
    let mut shapes = vec![None; network.tensors];
    for (input, [height, width]) in network.inputs.iter().zip(inputs) {
        let Input {
            channels,
            stored,
            is_planar,
            ..
        } = *input;
        let shape = Shape {
            height: *height,
            width: *width,
            channels,
            stored,
            is_planar,
        };
        shapes[input.id] = Some(shape).filter(Shape::is_allowed);
    }
    for layer in network
        .layers
        .iter()
        .filter(|layer| !layer.inputs.is_empty())
    {
        shapes[layer.output] = Some(layer.shape(|id| shapes[id])?);
    }
    // A tensor that a layer replaced stays without a shape.
    let none = Shape {
        height: 0,
        width: 0,
        channels: 0,
        stored: 0,
        is_planar: false,
    };
    Some(
        shapes
            .into_iter()
            .map(|shape| shape.unwrap_or(none))
            .collect(),
    )
}

/// The places of all tensors, without buffers and rows, and with the margins that windows need.
fn places(network: &Layers, shapes: &[Shape]) -> Vec<Place> {
    let place = |shape: &Shape| Place {
        shape: *shape,
        margins: [0; 2],
        rows: 0,
        buffer: 0,
    };
    let mut places: Vec<Place> = shapes.iter().map(place).collect();
    for layer in &network.layers {
        let Some(window) = layer.window() else {
            continue;
        };
        let (input, output) = (layer.inputs[0], shapes[layer.output].width);
        let reach = (output.max(1) - 1) * window.stride[1] + window.kernel[1];
        let behind = reach.saturating_sub(window.before[1] + shapes[input].width);
        let own = &mut places[input].margins;
        *own = [own[0].max(window.before[1]), own[1].max(behind)];
    }
    places
}

/// Ranges of layers that run together: of all ways to divide the layers, the one with the least to
/// write and to read between chains. In several bands, the inputs are a chain of their own.
fn chains(network: &Layers, shapes: &[Shape], bands: usize) -> Vec<Range<usize>> {
    let layers = &network.layers;
    let uses = uses(network);
    // For each number of layers: what their chains exchange, and where the last of them begins.
    let mut best = vec![(0, 0)];
    for end in 1..=layers.len() {
        let starts = (end.saturating_sub(CHAIN_LAYERS)..end).rev();
        let mut bytes = 0;
        let fits = starts.take_while(|start| {
            bytes += kept(&layers[*start], shapes);
            let follows = layers.get(start + 1).filter(|_| start + 1 < end);
            follows.is_none_or(|next| {
                let before = &layers[*start];
                let is_input = bands > 1 && before.inputs.is_empty();
                let begins = is_input || begins(next, before, &uses, shapes);
                bytes <= CHAIN_BYTES && !begins
            })
        });
        let divided = fits.map(|start| {
            let exchanged: usize = best[start].0 + exchanged(layers, start..end, &uses, shapes);
            (exchanged, start)
        });
        // Of equal ways, the one with smaller tensors between chains.
        let least = divided.min_by_key(|(exchanged, start)| (*exchanged, Reverse(*start)));
        best.push(least.unwrap_or_default());
    }
    let mut chains = Vec::new();
    let mut end = layers.len();
    while end > 0 {
        let start = best[end].1;
        chains.push(start..end);
        end = start;
    }
    chains.reverse();
    chains
}

/// Bytes of rows and weights that a layer needs at a time.
fn kept(layer: &Layer, shapes: &[Shape]) -> usize {
    let rows = layer.window().map_or(1, |window| window.kernel[0]);
    let line = |id: &Id| shapes[*id].width * shapes[*id].stored * size_of::<f32>();
    let weights = layer.weights() * size_of::<f32>();
    weights + layer.inputs.first().map_or(0, |input| rows * line(input))
}

/// The layer that yields a tensor, and the number of layers that take it.
#[derive(Debug, Clone, Copy, Default)]
struct Use {
    producer: usize,
    count: usize,
    last: usize,
}

fn uses(network: &Layers) -> Vec<Use> {
    let mut uses = vec![Use::default(); network.tensors];
    for (index, layer) in network.layers.iter().enumerate() {
        uses[layer.output].producer = index;
        for input in &layer.inputs {
            uses[*input].count += 1;
            uses[*input].last = index;
        }
    }
    uses
}

/// Returns true if a chain begins with `layer`, which follows `before`: `layer` needs its whole
/// input, or the input is used again later and has to be kept anyway.
fn begins(layer: &Layer, before: &Layer, uses: &[Use], shapes: &[Shape]) -> bool {
    let is_whole = matches!(layer.operator, Operator::Mean | Operator::Scale);
    let input = layer.inputs.first();
    is_whole
        || input.is_some_and(|input| {
            let is_kept = uses[*input].count > 1 && before.output == *input;
            shapes[*input].height == 1 || is_kept
        })
}

/// Floats that a chain reads from others, and that it writes for them.
fn exchanged(layers: &[Layer], chain: Range<usize>, uses: &[Use], shapes: &[Shape]) -> usize {
    let floats = |id: Id| shapes[id].height * shapes[id].width * shapes[id].stored;
    let own = layers[chain.clone()].iter();
    let read = own.clone().flat_map(|layer| &layer.inputs);
    let read = read.filter(|id| uses[**id].producer < chain.start);
    let written = own.map(|layer| &layer.output);
    let written = written.filter(|id| uses[**id].last >= chain.end);
    read.chain(written).map(|id| floats(*id)).sum()
}

/// The chains during which a tensor is kept.
#[derive(Debug, Clone, Copy)]
struct Life {
    first: usize,
    last: usize,
    /// The tensor whose memory it takes over, row by row.
    replaces: Option<Id>,
}

fn lives(network: &Layers, chains: &[Range<usize>], places: &[Place]) -> Vec<Life> {
    let mut lives = vec![
        Life {
            first: usize::MAX,
            last: 0,
            replaces: None
        };
        network.tensors
    ];
    for (number, chain) in chains.iter().enumerate() {
        for layer in &network.layers[chain.clone()] {
            lives[layer.output] = Life {
                first: number,
                last: number,
                replaces: None,
            };
            for input in &layer.inputs {
                lives[*input].last = number;
            }
        }
    }
    for piece in network.outputs.iter().flat_map(|output| &output.pieces) {
        lives[piece.id].last = usize::MAX;
    }
    for (number, chain) in chains.iter().enumerate() {
        let layers = &network.layers[chain.clone()];
        for layer in layers {
            lives[layer.output].replaces = replaced(layer, places, &lives, layers, number);
        }
    }
    lives
}

/// Orders the rows of a chain that are `needed`. Tensors that nothing outside of it takes
/// keep as many rows as are needed at a time.
fn order(
    layers: &[Layer],
    first: usize,
    needed: &[Range<usize>],
    places: &mut [Place],
    is_taken: &dyn Fn(Id) -> bool,
) -> Option<Vec<Work>> {
    let producer = |id: Id| layers.iter().position(|layer| layer.output == id);
    let end = |layer: usize| needed[layers[layer].output].end;
    let spans = layers.iter().map(|layer| &needed[layer.output]);
    let mut done: Vec<usize> = spans.clone().map(|span| span.start).collect();
    let total = spans.map(Range::len).sum();
    let mut kept = vec![1; layers.len()];
    let sources: Vec<Vec<Option<usize>>> = layers
        .iter()
        .map(|layer| layer.inputs.iter().map(|id| producer(*id)).collect())
        .collect();
    let users: Vec<Vec<(usize, usize)>> = (0..layers.len())
        .map(|index| {
            let takes = |(user, sources): (usize, &Vec<Option<usize>>)| {
                let places = sources.iter().enumerate();
                places
                    .filter(|(_, source)| **source == Some(index))
                    .map(move |(input, _)| (user, input))
                    .collect::<Vec<_>>()
            };
            sources.iter().enumerate().flat_map(takes).collect()
        })
        .collect();
    let rows = |layer: usize, input: usize, row: usize, places: &[Place]| {
        let own = &layers[layer];
        own.rows(
            input,
            row,
            &places[own.inputs[input]].shape,
            &places[own.output].shape,
        )
    };
    let steps: Vec<usize> = layers.iter().map(|layer| step(layer, places)).collect();
    let mut work = Vec::with_capacity(total);
    while done
        .iter()
        .enumerate()
        .any(|(layer, done)| *done < end(layer))
    {
        let next = |index: usize| done[index]..end(index).min(done[index] + steps[index]);
        let is_ready = |index: &usize| {
            let own = next(*index);
            let has = |row| {
                sources[*index].iter().enumerate().all(|(input, source)| {
                    let rows = rows(*index, input, row, places);
                    source.is_none_or(|source| rows.is_empty() || rows.end <= done[source])
                })
            };
            !own.is_empty() && own.into_iter().all(has)
        };
        // Otherwise one of two branches would run far ahead of the other.
        let is_wanted = |index: &usize| {
            let mut pending = users[*index]
                .iter()
                .filter(|(user, _)| !next(*user).is_empty());
            let wants = |(user, input): &(usize, usize)| {
                next(*user).any(|row| rows(*user, *input, row, places).end > done[*index])
            };
            pending.clone().next().is_none() || pending.any(wants)
        };
        let mut ready = (0..layers.len()).rev().filter(is_ready);
        let index = ready.clone().find(is_wanted).or_else(|| ready.next())?;
        let own = next(index);
        work.push(Work {
            layer: (first + index) as u32,
            rows: own.start as u32..own.end as u32,
        });
        done[index] = own.end;
        let oldest = users[index].iter().filter_map(|(user, input)| {
            let row = done[*user];
            (row < end(*user)).then(|| rows(*user, *input, row, places).start)
        });
        let oldest = oldest.min().unwrap_or(own.start);
        kept[index] = kept[index].max(own.end - oldest.min(own.start));
    }
    for (layer, kept) in layers.iter().zip(kept) {
        if !is_taken(layer.output) {
            places[layer.output].rows = kept;
        }
    }
    Some(work)
}

/// Number of rows of a layer to compute at a time.
fn step(layer: &Layer, places: &[Place]) -> usize {
    match &layer.operator {
        Operator::Dense(_, window) => {
            dense::rows_at_a_time(places[layer.output].shape.width, window.kernel[0])
        }
        _ => 1,
    }
}

/// The tensor that `layer` adds, if nothing needs a row of it once that row of the output is
/// computed. All other layers that take it are of this chain, and come before `layer`.
fn replaced(
    layer: &Layer,
    places: &[Place],
    lives: &[Life],
    layers: &[Layer],
    chain: usize,
) -> Option<Id> {
    let added = *layer.inputs.get(1).filter(|added| {
        matches!(layer.operator, Operator::Dense(..)) && layer.inputs[0] != **added
    })?;
    let (own, other) = (&places[layer.output], &places[added]);
    let is_alike = own.shape == other.shape
        && own.margins == other.margins
        && lives[layer.output].last > chain
        && lives[added].last == chain
        && lives[added].first < chain;
    let takes = |other: &&Layer| other.output != layer.output && other.inputs.contains(&added);
    let are_before = layers.iter().filter(takes).all(|other| {
        let is_pixel = other
            .window()
            .is_some_and(|window| *window == Window::PIXEL);
        is_pixel
            && other.inputs[0] == added
            && other.inputs.get(1) != Some(&added)
            && depends(layers, layer, other.output)
    });
    (is_alike && are_before).then_some(added)
}

/// Returns true if `layer` depends on the tensor `id` of the same chain.
fn depends(layers: &[Layer], layer: &Layer, id: Id) -> bool {
    layer.inputs.iter().any(|input| {
        let producer = layers.iter().find(|other| other.output == *input);
        *input == id || producer.is_some_and(|producer| depends(layers, producer, id))
    })
}

/// Makes room for the rows that a band has of tensors that are kept from chain to chain. Those that
/// replace one another have the same rows, in the same place.
fn keep(places: &mut [Place], held: &[Range<usize>], lives: &[Life]) {
    let first = |mut id: Id| {
        while let Some(replaced) = lives[id].replaces {
            id = replaced;
        }
        id
    };
    let mut rows = held.to_vec();
    for (id, held) in held.iter().enumerate() {
        rows[first(id)] = hull(&rows[first(id)], held);
    }
    for (id, place) in places.iter_mut().enumerate() {
        if lives[id].last > lives[id].first {
            place.rows = rows[first(id)].len();
        }
    }
}

/// Gives each tensor a buffer that no other tensor uses at the same time; returns their lengths.
fn assign(places: &mut [Place], lives: &[Life]) -> Vec<usize> {
    let mut order: Vec<Id> = (0..places.len())
        .filter(|id| lives[*id].first != usize::MAX && places[*id].rows > 0)
        .collect();
    order.sort_by_key(|id| lives[*id].first);
    let mut buffers: Vec<(usize, usize)> = Vec::new();
    for id in order {
        let length = places[id].rows * places[id].layout().len();
        let Life {
            first,
            last,
            replaces,
        } = lives[id];
        if let Some(replaced) = replaces {
            let index = places[replaced].buffer;
            places[id].buffer = index;
            buffers[index].1 = last;
            continue;
        }
        let place = &mut places[id];
        // The free buffer whose length differs least.
        let free = (0..buffers.len()).filter(|index| buffers[*index].1 < first);
        let nearest = free.min_by_key(|index| buffers[*index].0.abs_diff(length));
        let index = nearest.unwrap_or_else(|| {
            buffers.push((0, 0));
            buffers.len() - 1
        });
        buffers[index] = (buffers[index].0.max(length), last);
        place.buffer = index;
    }
    buffers.into_iter().map(|(length, _)| length).collect()
}
