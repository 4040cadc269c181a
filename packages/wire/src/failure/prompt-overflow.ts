/**
 * Detects from an error response that a prompt exceeded the context window, and by how many tokens as far as it says. Also
 * tells apart errors of a rate limit, whose texts are similar.
 */
import type { TokenExcess } from '@tidemark/core/engine/reply'
import { omitUndefined } from '@tidemark/core/log/json'
import type { ErrorBody } from './error-body.ts'
import {
  EMPTY_BODY_OVERFLOW_STATUSES,
  OVERFLOW_CODES,
  OVERFLOW_PATTERNS,
  RATE_LIMIT_PATTERNS,
} from './overflow-patterns.ts'

interface RejectedCall {
  readonly status?: number
  readonly body: ErrorBody
  /** Name of the provider, needed only for providers that reject with an empty body. */
  readonly provider?: string
}

/**
 * Returns the token counts in an error response for a prompt that is too long; an empty object if it states none.
 * Returns null if the error is another one, or is about a rate limit.
 */
export function findPromptOverflow(refusal: RejectedCall): TokenExcess | null {
  const { body } = refusal
  const texts = body.inner === undefined ? [body.message] : [body.message, body.inner]
  if (texts.some(isRateLimitText)) return null
  return overflowFromText(texts, refusal.status) ?? overflowFromCode(body) ?? overflowFromEmptyBody(refusal)
}

/** Checks whether an error text is about a rate limit rather than the size of the prompt. */
export function isRateLimitText(text: string): boolean {
  return RATE_LIMIT_PATTERNS.some((pattern) => pattern.test(text))
}

function overflowFromText(texts: readonly string[], status: number | undefined): TokenExcess | null {
  for (const pattern of OVERFLOW_PATTERNS) {
    if (pattern.status !== undefined && (status === undefined || !pattern.status.includes(status))) continue
    for (const text of texts) {
      const match = pattern.text.exec(text)
      if (match !== null) return gapFromGroups(match.groups ?? {})
    }
  }
  return null
}

function overflowFromCode({ code, type, fields }: ErrorBody): TokenExcess | null {
  const row = OVERFLOW_CODES.find((each) => each.code === code || each.code === type)
  if (row === undefined) return null
  const read = (name: string | undefined): number | undefined => {
    const value = name === undefined ? undefined : fields[name]
    return typeof value === 'number' ? value : undefined
  }
  return createGap(read(row.actual), read(row.limit))
}

function overflowFromEmptyBody({ status, body, provider }: RejectedCall): TokenExcess | null {
  if (body.message !== '' || status === undefined || provider === undefined) return null
  return EMPTY_BODY_OVERFLOW_STATUSES[provider]?.includes(status) ? {} : null
}

function gapFromGroups(groups: Readonly<Record<string, string | undefined>>): TokenExcess {
  const actual = parseFigure(groups.actual)
  const sum = actual === undefined ? undefined : actual + (parseFigure(groups.plus) ?? 0)
  return createGap(sum, parseFigure(groups.limit), parseFigure(groups.over))
}

function createGap(actual: number | undefined, limit: number | undefined, excess?: number): TokenExcess {
  const over =
    excess ?? (actual === undefined || limit === undefined ? undefined : Math.max(0, actual - limit))
  return omitUndefined({ actual, limit, over })
}

function parseFigure(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number(text.replaceAll(',', ''))
}
