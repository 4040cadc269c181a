/**
 * A robust linear fit: the sum of absolute errors, near enough, with a slight pull to 0 and no weight below 0
 * unless it may be. Errors under `near` count by their square, so that the fit is smooth where it is good.
 */
export interface Problem {
  readonly rows: readonly Float64Array[]
  readonly targets: readonly number[]
  /** Columns that may weigh less than 0. */
  readonly free: ReadonlySet<number>
  /** Columns whose weight is given and not fitted. */
  readonly given: ReadonlyMap<number, number>
}

const NEAR = 40
const PULL = 0.3
const ROUNDS = 40
const SWEEPS = 200

export function fitWeights(problem: Problem): Float64Array {
  const width = problem.rows[0]?.length ?? 0
  const sizes = columnSizes(problem.rows, width)
  const rows = problem.rows.map((row) => row.map((value, column) => value / (sizes[column] ?? 1)))
  const solution = new Float64Array(width)
  for (const [column, weight] of problem.given) solution[column] = weight * (sizes[column] ?? 1)
  let trust = problem.targets.map(() => 1)
  for (let round = 0; round < ROUNDS; round += 1) {
    solve(normalEquations(rows, problem.targets, trust), solution, problem)
    trust = rows.map(
      (row, index) => 1 / Math.max(NEAR, Math.abs(dot(row, solution) - (problem.targets[index] ?? 0))),
    )
  }
  return solution.map((weight, column) => weight / (sizes[column] ?? 1))
}

export function dot(one: Float64Array, other: Float64Array): number {
  return one.reduce((sum, value, index) => sum + value * (other[index] ?? 0), 0)
}

/** Root mean square of each column; 1 for one that is empty. */
function columnSizes(rows: readonly Float64Array[], width: number): readonly number[] {
  return Array.from({ length: width }, (_, column) => {
    const squares = rows.reduce((sum, row) => sum + (row[column] ?? 0) ** 2, 0)
    return squares === 0 ? 1 : Math.sqrt(squares / rows.length)
  })
}

interface Equations {
  readonly matrix: readonly Float64Array[]
  readonly right: Float64Array
}

function normalEquations(
  rows: readonly Float64Array[],
  targets: readonly number[],
  trust: readonly number[],
): Equations {
  const width = rows[0]?.length ?? 0
  const matrix = Array.from({ length: width }, () => new Float64Array(width))
  const right = new Float64Array(width)
  rows.forEach((row, index) => {
    const weight = trust[index] ?? 0
    matrix.forEach((line, column) => {
      const scaled = weight * (row[column] ?? 0)
      if (scaled === 0) return
      for (let other = 0; other < width; other += 1)
        line[other] = (line[other] ?? 0) + scaled * (row[other] ?? 0)
      right[column] = (right[column] ?? 0) + scaled * (targets[index] ?? 0)
    })
  })
  const pull = (PULL * trust.reduce((sum, weight) => sum + weight, 0)) / trust.length
  matrix.forEach((line, column) => {
    line[column] = (line[column] ?? 0) + pull
  })
  return { matrix, right }
}

/** Column by column, each to its best value given the others, until none moves. */
function solve({ matrix, right }: Equations, solution: Float64Array, { free, given }: Problem): void {
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    let moved = 0
    matrix.forEach((line, column) => {
      if (given.has(column)) return
      const now = solution[column] ?? 0
      const slope = (right[column] ?? 0) - dot(line, solution)
      const best = now + slope / (line[column] ?? 1)
      const next = free.has(column) ? best : Math.max(0, best)
      solution[column] = next
      moved = Math.max(moved, Math.abs(next - now))
    })
    if (moved < 1e-7) return
  }
}
