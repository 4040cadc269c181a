/**
 * The tokens a call is billed for, by class. Totals of a response leave out what a compaction on the server
 * cost, so where the provider lists iterations the bill is their sum, and the totals are not looked at.
 */
import { isObject } from '../conversation/json.ts'
import type { Usage } from '../conversation/record.ts'

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
  const listed: readonly unknown[] = Array.isArray(usage.iterations) ? usage.iterations : []
  const iterations = listed.filter(isObject)
  return iterations.length === 0 ? [partOf(usage)] : iterations.map(partOf)
}

function partOf(fields: Fields): BilledPart {
  const { write5m, write1h, assumed } = writesOf(fields)
  const model = typeof fields.model === 'string' ? fields.model : null
  const tokens = {
    input: count(fields.input_tokens),
    cacheRead: count(fields.cache_read_input_tokens),
    write5m,
    write1h,
    output: count(fields.output_tokens),
  }
  return { tokens, model, isForeign: isForeign(fields.type), assumed }
}

function writesOf(fields: Fields): { write5m: number; write1h: number; assumed: readonly string[] } {
  const split = isObject(fields.cache_creation) ? fields.cache_creation : {}
  const write5m = count(split.ephemeral_5m_input_tokens)
  const write1h = count(split.ephemeral_1h_input_tokens)
  const rest = Math.max(0, count(fields.cache_creation_input_tokens) - write5m - write1h)
  return { write5m: write5m + rest, write1h, assumed: rest === 0 ? [] : [WRITES_AS_5M] }
}

function isForeign(type: unknown): boolean {
  return typeof type === 'string' && type !== 'message' && type !== 'compaction'
}

function count(value: unknown): number {
  return typeof value === 'number' && value > 0 ? value : 0
}
