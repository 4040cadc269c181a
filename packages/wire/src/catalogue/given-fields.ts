/** What a user may say of a model, field by field, and what each field may hold. */
import { isObject, PRICE_CLASSES } from '@tidemark/core'

export interface Check {
  /** Finishes the sentence "expected …". */
  readonly expects: string
  accepts(value: unknown): boolean
}

export interface FieldGroup {
  readonly [field: string]: Check | FieldGroup
}

export function isCheck(node: Check | FieldGroup): node is Check {
  return typeof node.accepts === 'function'
}

const count = (least: number): Check => ({
  expects: `a whole number of ${least} or more`,
  accepts: (value) => Number.isSafeInteger(value) && Number(value) >= least,
})
const rate: Check = {
  expects: 'dollars per million tokens, 0 or more',
  accepts: (value) => typeof value === 'number' && Number.isFinite(value) && value >= 0,
}
const factor: Check = {
  expects: 'a number above 0',
  accepts: (value) => typeof value === 'number' && Number.isFinite(value) && value > 0,
}
const flag: Check = { expects: 'true or false', accepts: (value) => typeof value === 'boolean' }
const word: Check = {
  expects: 'a string that is not blank',
  accepts: (value) => typeof value === 'string' && value.trim() !== '',
}
const day: Check = {
  expects: 'a day as YYYY-MM-DD',
  accepts: (value) => typeof value === 'string' && /^\d{4}-\d\d-\d\d$/.test(value),
}
const oneOf = (...choices: readonly string[]): Check => ({
  expects: choices.map((choice) => `"${choice}"`).join(' or '),
  accepts: (value) => choices.some((choice) => choice === value),
})
const listOf = (item: Check): Check => ({
  expects: `a list, each item ${item.expects}`,
  accepts: (value) => Array.isArray(value) && value.every((part) => item.accepts(part)),
})
const tableOf = (item: Check): Check => ({
  expects: `an object, each value ${item.expects}`,
  accepts: (value) => isObject(value) && Object.values(value).every((part) => item.accepts(part)),
})
const either = (one: Check, other: Check): Check => ({
  expects: `${one.expects}, or ${other.expects}`,
  accepts: (value) => one.accepts(value) || other.accepts(value),
})
const isNull: Check = { expects: 'null where it is not known', accepts: (value) => value === null }
const orNull = (check: Check): Check => either(check, isNull)

/** An object with exactly these fields. */
const shape = (fields: Readonly<Record<string, Check>>): Check => ({
  expects: `an object with ${Object.keys(fields).join(', ')}`,
  accepts: (value) =>
    isObject(value) &&
    Object.keys(value).every((key) => Object.hasOwn(fields, key)) &&
    Object.entries(fields).every(([key, check]) => check.accepts(value[key])),
})

const rates = Object.fromEntries(PRICE_CLASSES.map((kind) => [kind, orNull(rate)]))
const flags = (...names: readonly string[]): FieldGroup =>
  Object.fromEntries(names.map((name) => [name, orNull(flag)]))

export const GIVEN_FIELDS: FieldGroup = {
  like: word,
  vendor: word,
  aliases: listOf(word),
  window: orNull(count(1)),
  maxInput: orNull(count(1)),
  maxOutput: orNull(count(1)),
  longWindow: count(1),
  prices: {
    ...rates,
    tiers: listOf(shape({ above: count(1), ...rates })),
    factors: tableOf(tableOf(orNull(factor))),
    fees: tableOf(orNull(rate)),
  },
  regionalFactor: factor,
  cache: {
    minimum: orNull(count(0)),
    markers: orNull(count(0)),
    lookBack: orNull(either(count(1), oneOf('unlimited'))),
    ttls: orNull(listOf(shape({ name: word, seconds: count(1) }))),
  },
  thinking: {
    modes: orNull(listOf(oneOf('adaptive', 'enabled', 'between_tools', 'disabled'))),
    leastUpTo: word,
    efforts: orNull(listOf(word)),
    binding: orNull(oneOf('none', 'model', 'prefix')),
    ...flags('isOnByDefault', 'keepsPrior', 'isAccountBound'),
  },
  capabilities: flags(
    'images',
    'forcedToolChoice',
    'prefill',
    'sampling',
    'systemMessages',
    'toolChanges',
    'messageEffort',
    'contextEditing',
    'thresholdCompaction',
    'onDemandCompaction',
    'endsAtWindow',
  ),
  limits: { bodyBytes: orNull(count(1)), images: orNull(count(0)) },
  tokenizer: orNull(oneOf('claude-to-4.6', 'claude-from-4.7', 'openai', 'gemini')),
  source: word,
  asOf: day,
}

export const FILE_FIELDS: FieldGroup = { source: word, asOf: day }
