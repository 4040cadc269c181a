/**
 * The tokens a call is billed for, by class. Totals of a response leave out what a compaction on the server
 * cost, so where the provider lists iterations the bill is their sum, and the totals are not looked at.
 */
import { isObject } from '../conversation/json.ts'
import type { Usage } from '../conversation/record.ts'
import { countOf } from './figure.ts'

export const PRICE_CLASSES = ['input', 'cacheRead', 'write5m', 'write1h', 'output'] as const
export type PriceClass = (typeof PRICE_CLASSES)[number]
export type TokensByClass = { readonly [Class in PriceClass]: number }

/** One run of a model within a call. */
export interface BilledPart {
  readonly tokens: TokensByClass
  /** The model that answered it, where the provider names one. */
  readonly model: string | null
  /** Answered by an adviser or a fallback, and not by the model that was asked. */
  readonly isForeign: boolean
  readonly assumed: readonly string[]
}

const WRITES_AS_5M = 'cache writes without a lifetime are counted as 5-minute writes'

type Fields = { readonly [field: string]: unknown }

export function billedParts(usage: Usage): readonly BilledPart[] {
  const iterations = iterationsOf(usage)
  return iterations.length === 0 ? [partOf(usage)] : iterations.map(partOf)
}

/** The runs that the provider lists; none where it lists nothing that could be one. */
export function iterationsOf(usage: Usage): readonly Fields[] {
  const listed: readonly unknown[] = Array.isArray(usage.iterations) ? usage.iterations : []
  return listed.filter(isObject)
}

function partOf(fields: Fields): BilledPart {
  const { write5m, write1h, assumed } = writesOf(fields)
  const model = typeof fields.model === 'string' ? fields.model : null
  const tokens = {
    input: countOf(fields.input_tokens),
    cacheRead: countOf(fields.cache_read_input_tokens),
    write5m,
    write1h,
    output: countOf(fields.output_tokens),
  }
  return { tokens, model, isForeign: isForeign(fields.type), assumed }
}

function writesOf(fields: Fields): { write5m: number; write1h: number; assumed: readonly string[] } {
  const split = isObject(fields.cache_creation) ? fields.cache_creation : {}
  const write5m = countOf(split.ephemeral_5m_input_tokens)
  const write1h = countOf(split.ephemeral_1h_input_tokens)
  const rest = Math.max(0, countOf(fields.cache_creation_input_tokens) - write5m - write1h)
  return { write5m: write5m + rest, write1h, assumed: rest === 0 ? [] : [WRITES_AS_5M] }
}

function isForeign(type: unknown): boolean {
  return typeof type === 'string' && type !== 'message' && type !== 'compaction'
}
