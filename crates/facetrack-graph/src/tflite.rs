// SPDX-License-Identifier: MPL-2.0
//! Reads MediaPipe's networks as published (`.tflite`) and converts them to ONNX in memory.
//!
//! Names of inputs and outputs stay. An image input that a convolution reads is declared with its
//! channels first (`[1, 3, height, width]` where the file says `[1, height, width, 3]`), so that
//! nothing is transposed; outputs keep the shapes of the file.

mod flatbuffer;
mod lower;
mod schema;

use super::{Graph, Result, passes};

/// Reads the `.tflite` file `bytes`.
///
/// # Errors
/// Returns an error if the file is damaged, or has operators that MediaPipe's face networks do not
/// have; the message names the operator.
pub fn read(bytes: &[u8]) -> Result<Graph> {
    graph(&schema::Network::parse(bytes)?)
}

fn graph(network: &schema::Network<'_>) -> Result<Graph> {
    let mut graph = lower::lower(network)?;
    passes::run(&mut graph, passes::COMMON)?;
    Ok(graph)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made by tests/golden/make_small_networks.py; what they compute is tested in
    /// crates/facetrack/tests/engines/networks.rs.
    const IMAGE: &[u8] = include_bytes!("../../../tests/golden/networks/small_image.tflite");
    const TOKENS: &[u8] = include_bytes!("../../../tests/golden/networks/small_tokens.tflite");
    const UNSUPPORTED: &[u8] =
        include_bytes!("../../../tests/golden/networks/small_unsupported.tflite");

    fn graph(bytes: &[u8]) -> Graph {
        super::graph(&schema::Network::parse(bytes).unwrap()).unwrap()
    }

    /// A tensor like `tensor`, with ones, whose shape `change` changes.
    fn forged(tensor: &schema::Tensor, change: impl Fn(&mut Vec<usize>)) -> schema::Tensor {
        let mut shape = tensor.shape.clone();
        change(&mut shape);
        let elements = shape.iter().product();
        let constant = match tensor.constant {
            Some(schema::Constant::Int(_)) => schema::Constant::Int(vec![1; elements]),
            _ => schema::Constant::Float(vec![1.0; elements]),
        };
        schema::Tensor {
            name: "forged".into(),
            shape,
            constant: Some(constant),
        }
    }

    fn count(graph: &Graph, op: &str) -> usize {
        graph.nodes.iter().filter(|node| node.is(op)).count()
    }

    #[test]
    fn images_keep_their_channels_first() {
        let graph = graph(IMAGE);
        assert!(count(&graph, "Conv") > 2);
        // The two that bring the boxes into the file's order.
        assert_eq!(count(&graph, "Transpose"), 2);
    }

    #[test]
    fn tokens_are_not_transposed_and_normalised_by_one_operator() {
        let graph = graph(TOKENS);
        assert_eq!(count(&graph, "Transpose"), 0);
        assert_eq!(count(&graph, "LayerNormalization"), 4);
        assert_eq!(count(&graph, "Sqrt"), 1);
    }

    #[test]
    fn only_the_token_that_is_read_leaves_the_last_block() {
        let graph = graph(TOKENS);
        assert_eq!(count(&graph, "Slice"), 1);
        let last = graph
            .nodes
            .iter()
            .rfind(|node| node.is("LayerNormalization"));
        assert_eq!(graph.shape(last.unwrap().output()), [1, 8]);
    }

    #[test]
    fn an_unsupported_operator_is_named() {
        let reason = read(UNSUPPORTED).unwrap_err();
        for part in ["HARD_SWISH", "not supported"] {
            assert!(reason.contains(part), "{part} is not in: {reason}");
        }
    }

    #[test]
    fn inputs_and_outputs_of_the_same_name_are_refused() {
        let outputs_twice: fn(&mut schema::Network<'_>) =
            |network| network.outputs.push(network.outputs[0]);
        let output_like_input: fn(&mut schema::Network<'_>) = |network| {
            let [input, output] = [network.inputs[0], network.outputs[0]];
            network.tensors[output].name = network.tensors[input].name.clone();
        };
        for change in [outputs_twice, output_like_input] {
            let mut network = schema::Network::parse(IMAGE).unwrap();
            change(&mut network);
            let name = &network.tensors[network.outputs[0]].name;
            let reason = format!("two of its inputs and outputs are named {name}");
            assert_eq!(super::graph(&network).err(), Some(reason));
        }
    }

    #[test]
    fn what_does_not_fit_an_operator_is_refused_by_its_name() {
        let changes: [fn(&mut Vec<usize>); 5] = [
            |shape| shape.iter_mut().rev().take(1).for_each(|side| *side += 1),
            |shape| shape.iter_mut().take(1).for_each(|side| *side += 1),
            |shape| shape.iter_mut().rev().take(1).for_each(|side| *side *= 2),
            |shape| shape.insert(0, 2),
            |shape| shape.truncate(1),
        ];
        for bytes in [IMAGE, TOKENS] {
            let operators = schema::Network::parse(bytes).unwrap().operators;
            let inputs = operators.iter().enumerate().flat_map(|(index, operator)| {
                let taken = operator.inputs.iter().enumerate();
                taken.filter_map(move |(input, tensor)| Some((index, input, (*tensor)?)))
            });
            for (index, input, tensor) in inputs {
                for change in changes {
                    let mut network = schema::Network::parse(bytes).unwrap();
                    let forged = forged(&network.tensors[tensor], change);
                    let differs = forged.shape != network.tensors[tensor].shape;
                    let shape = forged.shape.clone();
                    network.tensors.push(forged);
                    let count = network.tensors.len();
                    network.operators[index].inputs[input] = Some(count - 1);
                    let result = super::graph(&network).map(|_| ());
                    let name = match operators[index].code {
                        3 => "CONV_2D",
                        4 => "DEPTHWISE_CONV_2D",
                        34 => "PAD",
                        54 => "PRELU",
                        // Operands broadcast, so that others fit as well; they must only come to an
                        // end.
                        _ => continue,
                    };
                    let context = format!("operator {index} ({name}): ");
                    let named = result.is_err_and(|reason| reason.starts_with(&context));
                    assert!(named || !differs, "{context}input {input} of {shape:?}");
                }
            }
        }
    }

    /// `count` convolutions, one after the other, with the same 4 MiB of weights.
    fn sharing(count: usize) -> schema::Network<'static> {
        let mut network = schema::Network::parse(IMAGE).unwrap();
        let options = network.operators.iter().find(|o| o.code == 3);
        let options = options.unwrap().options;
        let tensor = |name: String, shape: Vec<usize>| schema::Tensor {
            name,
            shape,
            constant: None,
        };
        network.tensors = (0..=count)
            .map(|i| tensor(format!("image {i}"), vec![1, 2, 2, 1024]))
            .collect();
        let mut weights = tensor("weights".into(), vec![1024, 1, 1, 1024]);
        weights.constant = Some(schema::Constant::Float(vec![0.0; 1 << 20]));
        network.tensors.push(weights);
        (network.inputs, network.outputs) = (vec![0], vec![count]);
        network.operators = (0..count)
            .map(|index| schema::Operator {
                code: 3,
                inputs: vec![Some(index), Some(count + 1)],
                outputs: vec![index + 1],
                options,
            })
            .collect();
        network
    }

    #[test]
    fn weights_that_many_operators_share_do_not_take_all_memory() {
        assert!(super::graph(&sharing(2)).is_ok());
        let reason = super::graph(&sharing(300)).unwrap_err();
        for part in ["operator 16 (CONV_2D)", "constants", "67108864 bytes"] {
            assert!(reason.contains(part), "{part} is not in: {reason}");
        }
    }

    #[test]
    fn a_foreign_file_is_refused() {
        for bytes in [b"".as_slice(), b"PK\x03\x04", b"\x08\x08:\x0bonnx-of-sorts"] {
            let reason = read(bytes).unwrap_err();
            assert!(reason.contains("TFL3"), "{reason}");
        }
    }

    #[test]
    fn every_truncation_is_an_error() {
        for bytes in [TOKENS, UNSUPPORTED] {
            for length in (0..bytes.len()).step_by(7) {
                assert!(read(&bytes[..length]).is_err(), "{length} bytes pass");
            }
        }
    }

    #[test]
    fn no_damaged_byte_makes_it_panic() {
        for bytes in [TOKENS, UNSUPPORTED] {
            let mut damaged = bytes.to_vec();
            for position in (0..bytes.len()).step_by(3) {
                for value in [0x00, 0x01, 0x7f, 0xff] {
                    damaged[position] = value;
                    // The result may be a network or not, depending on the byte. Reading must only
                    // end.
                    let _ = read(&damaged);
                }
                damaged[position] = bytes[position];
            }
        }
    }
}
