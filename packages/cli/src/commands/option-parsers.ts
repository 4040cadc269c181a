/** Parsers for the values of options. Each throws one sentence that says what was expected. */
import { InvalidArgumentError } from 'commander'
import type { RunOptions } from 'tidemark'

/** Parses a whole number, which may be 0. */
export function parseWholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('Expected a whole number.')
  return Number(text)
}

/** Help text of the option `--max-body`, whose unit is megabytes. */
export const MAX_BODY_HELP = 'size of a request above which it is refused; default: 32'

export function parseMegabytes(text: string): number {
  if (!/^[1-9]\d{0,3}$/.test(text)) throw new InvalidArgumentError('Expected a whole number of megabytes.')
  return Number(text)
}

export function parseTokenCount(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('Expected a whole number of tokens.')
  return Number(text)
}

export function parsePercent(text: string): number {
  if (!/^(?:[1-9]\d?|100)$/.test(text))
    throw new InvalidArgumentError('Expected a whole number from 1 to 100.')
  return Number(text)
}

/** Parses limits of turns, tokens and dollars, as in `dollars=5,turns=200`. */
export function parseLimits(text: string): NonNullable<RunOptions['limits']> {
  const limits: Record<string, number> = {}
  for (const part of text.split(',')) {
    const [, name = '', value = ''] = /^(turns|tokens|dollars)=(\d+(?:\.\d+)?)$/.exec(part.trim()) ?? []
    const isRight = Number(value) > 0 && (name === 'dollars' || Number.isInteger(Number(value)))
    if (!isRight || name in limits)
      throw new InvalidArgumentError(
        `Expected turns, tokens or dollars, each once and above 0, as in dollars=5,turns=200; got "${part}".`,
      )
    limits[name] = Number(value)
  }
  return limits
}

/** Parses a whole number above 0. */
export function parsePositive(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('Expected a whole number above 0.')
  return Number(text)
}

export function parseDollars(text: string): number {
  if (!/^\d{1,9}(?:\.\d+)?$/.test(text) || Number(text) === 0)
    throw new InvalidArgumentError('Expected dollars above 0, as 50 or 0.5.')
  return Number(text)
}

export function parseUrl(text: string): string {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
    throw new InvalidArgumentError('Expected an http or https URL.')
  return text
}

export function parsePort(text: string): number {
  const port = Number(text)
  if (!/^\d+$/.test(text) || port > 65_535) throw new InvalidArgumentError('Expected a port from 0 to 65535.')
  return port
}

/** Returns the text unchanged; it must not be empty. It is a row number, or the beginning of a session id. */
export function parseSessionChoice(text: string): string {
  if (text.trim() === '')
    throw new InvalidArgumentError('Expected the number of a session, or the beginning of its id.')
  return text
}
