/** Did the prompt not fit, and by how much? Also where the provider never said so. */
import type { JsonObject, TokenGap } from '@tidemark/core'
import { given } from '../optional-fields.ts'
import type { ErrorBody } from './error-body.ts'
import {
  NOT_OVERFLOW,
  OVERFLOW_CODES,
  OVERFLOW_PATTERNS,
  OVERFLOW_WITHOUT_BODY,
  type OverflowCode,
  type OverflowPattern,
} from './overflow-patterns.ts'

interface Refusal {
  readonly status?: number
  readonly body: ErrorBody
  /** Whose words these are, where known; only some wordless refusals depend on it. */
  readonly provider?: string
}

/** The gap, empty where the provider gave no figures; null where this is no overflow. */
export function findOverflow(refusal: Refusal): TokenGap | null {
  const { body } = refusal
  const texts = body.inner === undefined ? [body.message] : [body.message, body.inner]
  if (texts.some(isAboutRate)) return null
  return fromText(texts, refusal.status) ?? fromCode(body) ?? fromSilence(refusal)
}

/** The words speak of a rate, not of a size. */
export function isAboutRate(text: string): boolean {
  return NOT_OVERFLOW.some((pattern) => pattern.test(text))
}

interface Success {
  /** All of the input, cached parts included. */
  readonly inputTokens: number
  readonly outputTokens: number
  /** The reply stopped because it ran out of room. */
  readonly stoppedByLength: boolean
}

/**
 * A reply that says nothing of it, yet the prompt was over: more was read than the window holds, or the
 * window was as good as full and nothing came out.
 */
export function findSilentOverflow(success: Success, window: number): TokenGap | null {
  const { inputTokens, outputTokens, stoppedByLength } = success
  const nothingSaid = stoppedByLength && outputTokens === 0 && inputTokens >= window * 0.99
  if (inputTokens <= window && !nothingSaid) return null
  return { actual: inputTokens, limit: window, over: Math.max(0, inputTokens - window) }
}

function fromText(texts: readonly string[], status: number | undefined): TokenGap | null {
  for (const pattern of OVERFLOW_PATTERNS) {
    if (!appliesTo(pattern, status)) continue
    for (const text of texts) {
      const match = pattern.text.exec(text)
      if (match !== null) return gapOf(match.groups ?? {})
    }
  }
  return null
}

function appliesTo(pattern: OverflowPattern, status: number | undefined): boolean {
  return pattern.status === undefined || (status !== undefined && pattern.status.includes(status))
}

function fromCode({ code, type, fields }: ErrorBody): TokenGap | null {
  const row = OVERFLOW_CODES.find((each) => each.code === code || each.code === type)
  return row === undefined ? null : gapOfFields(row, fields)
}

function fromSilence({ status, body, provider }: Refusal): TokenGap | null {
  if (body.message !== '' || status === undefined || provider === undefined) return null
  return OVERFLOW_WITHOUT_BODY[provider]?.includes(status) ? {} : null
}

function gapOf(groups: Readonly<Record<string, string | undefined>>): TokenGap {
  const actual = figure(groups.actual)
  const sum = actual === undefined ? undefined : actual + (figure(groups.plus) ?? 0)
  return gap(sum, figure(groups.limit), figure(groups.over))
}

function gapOfFields(row: OverflowCode, fields: JsonObject): TokenGap {
  const read = (name: string | undefined) => (name === undefined ? undefined : fields[name])
  const [actual, limit] = [read(row.actual), read(row.limit)]
  return gap(typeof actual === 'number' ? actual : undefined, typeof limit === 'number' ? limit : undefined)
}

function gap(actual: number | undefined, limit: number | undefined, said?: number): TokenGap {
  const over = said ?? (actual === undefined || limit === undefined ? undefined : Math.max(0, actual - limit))
  return given({ actual, limit, over })
}

function figure(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number(text.replaceAll(',', ''))
}
