/** From the rows of some sessions to the constants of their tokenizer, as they stand in the catalogue. */
import { CHARACTER_CLASSES, type CharacterClass } from '../../packages/core/src/tokens/estimator.ts'
import type { FittedConstants } from '../../packages/wire/src/catalogue/estimator-constants.ts'
import { ASSUMED, COLUMN_NAMES, column, type EXTRA, FREE, type Row } from './features.ts'
import { dot, fitWeights } from './regression.ts'

/** Tokens that a session has to show before its own scale weighs as much as that of the others. */
const START_WEIGHT = 20_000

export function fitConstants(rows: readonly Row[]): FittedConstants {
  const given = new Map([...ASSUMED].map(([name, weight]) => [COLUMN_NAMES.indexOf(name), weight]))
  const targets = rows.map((row) => row.growth)
  const weights = fitWeights({ rows: rows.map((row) => row.features), targets, free: FREE, given })
  const extra = (name: (typeof EXTRA)[number]): number => rounded(weights[column(name)] ?? 0, 1)
  return {
    characters: byClass(weights, 0),
    runs: byClass(weights, CHARACTER_CLASSES.length),
    perText: extra('text'),
    perToolUse: extra('tool-use'),
    perToolField: extra('field'),
    perToolResult: extra('tool-result'),
    perSignatureCharacter: rounded(weights[column('cipher')] ?? 0, 4),
    signatureLess: -extra('thinking'),
    reminder: Math.round(weights[column('reminder')] ?? 0),
    start: startFor(rows, weights),
  }
}

function byClass(weights: Float64Array, from: number): Record<CharacterClass, number> {
  const entries = CHARACTER_CLASSES.map((name, index) => [name, rounded(weights[from + index] ?? 0, 4)])
  return Object.fromEntries(entries) as Record<CharacterClass, number>
}

/**
 * A median fit runs low in sum, since what a log leaves out is only ever missing. The start makes up for it:
 * the offset of the typical turn, and the scale that brings the sums together.
 */
function startFor(rows: readonly Row[], weights: Float64Array): FittedConstants['start'] {
  const fits = rows.map((row) => dot(row.features, weights))
  const errors = rows.map((row, index) => row.growth - (fits[index] ?? 0))
  const offset = errors.toSorted((one, other) => one - other)[Math.floor(errors.length / 2)] ?? 0
  const scale = sum(rows.map((row) => row.growth - offset)) / sum(fits)
  return { scale: rounded(scale, 3), offset: rounded(offset, 1), weight: START_WEIGHT }
}

function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits))
}

function sum(figures: readonly number[]): number {
  return figures.reduce((total, figure) => total + figure, 0)
}
