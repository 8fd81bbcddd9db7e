// SPDX-License-Identifier: MPL-2.0
//! Fits expressions to landmarks by non-negative least squares, like eos'
//! `fit_blendshapes_to_landmarks_nnls`.

use nalgebra::{DMatrix, DVector};

/// Maximum number of least-squares problems to solve: `max_iter` of the original's call.
const MAX_ROUNDS: usize = 100;

/// Minimum slope of the squared error along a coefficient that is freed, relative to the maximum
/// slope at 0: above the rounding errors of `f64`.
const MIN_SLOPE: f64 = 1e-12;

/// The x ≥ 0 that minimizes ‖A·x − b‖, for `gram` = Aᵀ·A and `target` = Aᵀ·b, by the active-set
/// method of the original's `NNLS`: Lawson & Hanson, "Solving Least Squares Problems", 1974. `None`
/// if there is no finite solution.
pub(super) fn non_negative_least_squares(
    gram: &DMatrix<f64>,
    target: &DVector<f64>,
) -> Option<DVector<f64>> {
    if !gram.iter().chain(target).all(|value| value.is_finite()) {
        return None;
    }
    let count = target.len();
    let min_slope = MIN_SLOPE * target.amax();
    let mut solution = DVector::zeros(count);
    let mut free: Vec<usize> = Vec::with_capacity(count);
    let mut rounds = 0;
    loop {
        let slope = target - gram * &solution;
        let held = (0..count).filter(|i| !free.contains(i) && slope[*i] > min_slope);
        let Some(steepest) = held.max_by(|a, b| slope[*a].total_cmp(&slope[*b])) else {
            break;
        };
        free.push(steepest);
        while rounds < MAX_ROUNDS {
            rounds += 1;
            let Some(wanted) = solve_free(gram, target, &free) else {
                // It depends on the others.
                free.pop();
                break;
            };
            let Some((length, blocked)) = feasible_step(&solution, &wanted, &free) else {
                solution = wanted;
                break;
            };
            solution += (wanted - &solution) * length;
            solution[blocked] = 0.0;
            free.retain(|i| *i != blocked);
        }
        if rounds >= MAX_ROUNDS || !free.contains(&steepest) {
            break;
        }
    }
    let is_finite = solution.iter().all(|value: &f64| value.is_finite());
    is_finite.then(|| solution.map(|value| value.max(0.0)))
}

/// The least-squares solution with all coefficients 0 except the `free` ones.
fn solve_free(gram: &DMatrix<f64>, target: &DVector<f64>, free: &[usize]) -> Option<DVector<f64>> {
    let part = gram.select_rows(free).select_columns(free);
    let solved = part.cholesky()?.solve(&target.select_rows(free));
    let mut all = DVector::zeros(target.len());
    for (place, value) in std::iter::zip(free, solved.iter()) {
        all[*place] = *value;
    }
    Some(all)
}

/// The longest possible step from `solution` towards `wanted`, as the share of the distance after
/// which a coefficient would be negative, and the index of this coefficient; `None` if `wanted` can
/// be reached.
fn feasible_step(
    solution: &DVector<f64>,
    wanted: &DVector<f64>,
    free: &[usize],
) -> Option<(f64, usize)> {
    let negative = free.iter().copied().filter(|i| wanted[*i] < 0.0);
    let steps = negative.map(|i| (solution[i] / (solution[i] - wanted[i]), i));
    steps.min_by(|a, b| a.0.total_cmp(&b.0))
}

#[cfg(test)]
mod tests {
    use super::super::tests::synthetic::Noise;
    use super::*;

    fn solve(columns: usize, matrix: &[f64], wanted: &[f64]) -> Vec<f64> {
        let matrix = DMatrix::from_row_slice(wanted.len(), columns, matrix);
        let wanted = DVector::from_column_slice(wanted);
        let (gram, target) = (matrix.transpose() * &matrix, matrix.transpose() * wanted);
        let solved = non_negative_least_squares(&gram, &target).unwrap();
        solved.iter().copied().collect()
    }

    #[test]
    fn what_would_be_negative_is_zero() {
        assert_eq!(solve(2, &[1.0, 0.0, 0.0, 1.0], &[3.0, -2.0]), [3.0, 0.0]);
        assert_eq!(solve(2, &[1.0, 0.0, 0.0, 1.0], &[-3.0, -2.0]), [0.0, 0.0]);
        // Without the bound it is (3, −1); on the bound the first alone does less.
        let solved = solve(2, &[1.0, 1.0, 1.0, 2.0], &[2.0, 1.0]);
        assert!((solved[0] - 1.5).abs() < 1e-12 && solved[1] == 0.0);
        // Two alike, and one that does nothing.
        let solved = solve(3, &[1.0, 1.0, 0.0, 2.0, 2.0, 0.0], &[1.0, 2.0]);
        assert!((solved[0] + solved[1] - 1.0).abs() < 1e-12 && solved[2] == 0.0);
        assert_eq!(solve(0, &[], &[1.0, 2.0]), [0.0; 0]);
    }

    #[test]
    fn what_is_not_finite_has_no_solution() {
        let gram = DMatrix::identity(2, 2);
        for target in [[f64::INFINITY, 1.0], [f64::NAN, 1.0]] {
            let solved = non_negative_least_squares(&gram, &DVector::from(target.to_vec()));
            assert_eq!(solved, None);
        }
    }

    /// The conditions of Karush, Kuhn and Tucker: a coefficient is 0 where more of it would be
    /// worse, and as good as it can be otherwise.
    #[test]
    fn no_coefficient_can_be_bettered() {
        let mut noise = Noise(1);
        for round in 0..500 {
            let count = 1 + round % 8;
            let matrix = DMatrix::from_fn(12, count, |_, _| f64::from(noise.next()));
            let wanted = DVector::from_fn(12, |_, _| f64::from(noise.next()));
            let (gram, target) = (matrix.transpose() * &matrix, matrix.transpose() * wanted);
            let solved = non_negative_least_squares(&gram, &target).unwrap();
            let slope = target - gram * &solved;
            for (value, slope) in std::iter::zip(&solved, &slope) {
                assert!(*value >= 0.0);
                assert!(*slope < 1e-9, "{round}: {slope}");
                assert!(
                    *value == 0.0 || slope.abs() < 1e-9,
                    "{round}: {value} {slope}"
                );
            }
        }
    }
}
