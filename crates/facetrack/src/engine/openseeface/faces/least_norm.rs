// SPDX-License-Identifier: MPL-2.0
//! Linear equations, solved by the shortest of the least-squares solutions.

use nalgebra::{Matrix6, SVector, Vector6};

/// Singular values below this fraction of their sum count as 0: `SVBkSb` in OpenCV's `lapack.cpp`.
const NEGLIGIBLE: f64 = 2.0 * f64::EPSILON;

/// Maximum cosine of columns that count as orthogonal: `JacobiSVD` in the same file.
const ORTHOGONAL: f64 = 10.0 * f64::EPSILON;

/// Maximum number of sweeps, from the same file; a few are enough.
const MAX_SWEEPS: usize = 30;

/// A column of the equations, and below it the column of the rotation that made it.
type Column = SVector<f64, 12>;

/// The shortest `x` among the least-squares solutions of `a·x = b`.
///
/// Makes the columns of `a` orthogonal by rotations of pairs (Hestenes' one-sided Jacobi method).
/// Unlike methods that use a bidiagonal matrix, it protects small singular values from the rounding
/// of large ones. The first step of the pose depends on that: its equations span thirty orders of
/// magnitude.
pub(super) fn solve(a: &Matrix6<f64>, b: &Vector6<f64>) -> Vector6<f64> {
    let mut columns: [Column; 6] = std::array::from_fn(|i| {
        let mut column = Column::ith(6 + i, 1.0);
        column.fixed_rows_mut::<6>(0).copy_from(&a.column(i));
        column
    });
    for _ in 0..MAX_SWEEPS {
        if !sweep(&mut columns) {
            break;
        }
    }
    let singular_values = columns.map(|column| column.fixed_rows::<6>(0).norm());
    let negligible = singular_values.iter().sum::<f64>() * NEGLIGIBLE;
    let mut x = Vector6::zeros();
    for (column, value) in columns.iter().zip(singular_values) {
        if value > negligible {
            let part = (column.fixed_rows::<6>(0) / value).dot(b) / value;
            x += column.fixed_rows::<6>(6) * part;
        }
    }
    x
}

/// Makes each pair of columns orthogonal. Returns true if any pair was not.
fn sweep(columns: &mut [Column; 6]) -> bool {
    let mut changed = false;
    for i in 0..5 {
        for j in i + 1..6 {
            let (p, q) = (columns[i], columns[j]);
            let (own_p, own_q) = (p.fixed_rows::<6>(0), q.fixed_rows::<6>(0));
            let (pp, qq, pq) = (
                own_p.norm_squared(),
                own_q.norm_squared(),
                own_p.dot(&own_q),
            );
            let is_skew = pq.abs() > ORTHOGONAL * (pp * qq).sqrt();
            if is_skew {
                let (cos, sin) = half_angle(2.0 * pq, pp - qq);
                columns[i] = p * cos + q * sin;
                columns[j] = q * cos - p * sin;
                changed = true;
            }
        }
    }
    changed
}

/// Root of the sum of the squares of two numbers that are not negative.
///
/// This is not `libm::hypot`: with its different last digit, the search for the pose in the first
/// frames of a face differs from the recordings of the original.
fn hypotenuse(a: f64, b: f64) -> f64 {
    let (shorter, longer) = if a > b { (b, a) } else { (a, b) };
    if longer == 0.0 {
        return 0.0;
    }
    let ratio = shorter / longer;
    longer * (1.0 + ratio * ratio).sqrt()
}

/// Cosine and sine of half the angle whose sine and cosine have the ratio of `y` to `x`.
fn half_angle(y: f64, x: f64) -> (f64, f64) {
    let length = hypotenuse(y.abs(), x.abs());
    if x < 0.0 {
        let sin = ((length - x) / (2.0 * length)).sqrt();
        return (y / (2.0 * length * sin), sin);
    }
    let cos = ((length + x) / (2.0 * length)).sqrt();
    (cos, y / (2.0 * length * cos))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A symmetric matrix with these eigenvalues, and its eigenvectors as columns.
    fn with_eigenvalues(values: [f64; 6]) -> (Matrix6<f64>, Matrix6<f64>) {
        let some = Matrix6::from_fn(|row, column| ((row * 7 + column * 3) as f64).sin());
        let vectors = some.qr().q();
        let diagonal = Matrix6::from_diagonal(&Vector6::from(values));
        (vectors * diagonal * vectors.transpose(), vectors)
    }

    #[test]
    fn regular_equations_are_solved() {
        let (a, _) = with_eigenvalues([5.0, 4.0, 3.0, 2.0, 1.0, 0.5]);
        let x = Vector6::new(1.0, -2.0, 3.0, -4.0, 5.0, -6.0);
        assert!((solve(&a, &(a * x)) - x).norm() < 1e-12);
    }

    #[test]
    fn the_shortest_of_many_solutions_is_taken() {
        let (a, vectors) = with_eigenvalues([5.0, 4.0, 3.0, 2.0, 0.0, 0.0]);
        let x = vectors * Vector6::new(1.0, -2.0, 3.0, -4.0, 0.0, 0.0);
        assert!((solve(&a, &(a * x)) - x).norm() < 1e-12);
        assert_eq!(solve(&Matrix6::zeros(), &x), Vector6::zeros());
    }

    #[test]
    fn what_rounding_leaves_of_a_zero_is_zero() {
        let (a, vectors) = with_eigenvalues([1e34, 1e33, 3.0, 2.0, 1.0, 0.0]);
        let x = solve(
            &a,
            &(vectors * Vector6::new(1e34, 2e33, 1.0, 1.0, 1.0, 1.0)),
        );
        let along = vectors.transpose() * x;
        assert!((along[0] - 1.0).abs() < 1e-9 && (along[1] - 2.0).abs() < 1e-9);
        assert!(along.rows(2, 4).norm() < 1e-6, "{along}");
    }

    #[test]
    fn numbers_that_are_none_end() {
        let x = solve(&Matrix6::from_element(f64::NAN), &Vector6::zeros());
        assert_eq!(x, Vector6::zeros());
    }
}
