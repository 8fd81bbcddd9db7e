// SPDX-License-Identifier: MPL-2.0
//! Binary archives of the library cereal, as eos writes its matrices, vectors and strings into them.
