/** Whether a prompt exceeded the context window, and by how much; also if the provider did not report it. */
import type { TokenGap } from '@tidemark/core'
import { given } from '../optional-fields.ts'
import type { ErrorBody } from './error-body.ts'
import {
  NOT_OVERFLOW,
  OVERFLOW_CODES,
  OVERFLOW_PATTERNS,
  OVERFLOW_WITHOUT_BODY,
} from './overflow-patterns.ts'

interface Refusal {
  readonly status?: number
  readonly body: ErrorBody
  /** Needed only to recognise providers that reject with an empty body. */
  readonly provider?: string
}

/** The excess, empty if the provider gave no token counts; null if this is not an overflow. */
export function findOverflow(refusal: Refusal): TokenGap | null {
  const { body } = refusal
  const texts = body.inner === undefined ? [body.message] : [body.message, body.inner]
  if (texts.some(isAboutRate)) return null
  return fromText(texts, refusal.status) ?? fromCode(body) ?? fromSilence(refusal)
}

/** The text is about a rate limit, not about size. */
export function isAboutRate(text: string): boolean {
  return NOT_OVERFLOW.some((pattern) => pattern.test(text))
}

interface Success {
  /** The whole input, cached parts included. */
  readonly inputTokens: number
  readonly outputTokens: number
  /** The stop reason was a length limit. */
  readonly stoppedByLength: boolean
}

/**
 * An overflow that the provider did not report: the input was larger than the window, or the window was almost full and
 * the reply is empty.
 */
export function findSilentOverflow(success: Success, window: number): TokenGap | null {
  const { inputTokens, outputTokens, stoppedByLength } = success
  const isEmptyReply = stoppedByLength && outputTokens === 0 && inputTokens >= window * 0.99
  if (inputTokens <= window && !isEmptyReply) return null
  return { actual: inputTokens, limit: window, over: Math.max(0, inputTokens - window) }
}

function fromText(texts: readonly string[], status: number | undefined): TokenGap | null {
  for (const pattern of OVERFLOW_PATTERNS) {
    if (pattern.status !== undefined && (status === undefined || !pattern.status.includes(status))) continue
    for (const text of texts) {
      const match = pattern.text.exec(text)
      if (match !== null) return gapOf(match.groups ?? {})
    }
  }
  return null
}

function fromCode({ code, type, fields }: ErrorBody): TokenGap | null {
  const row = OVERFLOW_CODES.find((each) => each.code === code || each.code === type)
  if (row === undefined) return null
  const read = (name: string | undefined): number | undefined => {
    const value = name === undefined ? undefined : fields[name]
    return typeof value === 'number' ? value : undefined
  }
  return gap(read(row.actual), read(row.limit))
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

function gap(actual: number | undefined, limit: number | undefined, excess?: number): TokenGap {
  const over =
    excess ?? (actual === undefined || limit === undefined ? undefined : Math.max(0, actual - limit))
  return given({ actual, limit, over })
}

function figure(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number(text.replaceAll(',', ''))
}
