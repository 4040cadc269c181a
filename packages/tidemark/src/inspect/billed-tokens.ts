import { type BilledPart, billedParts, type TokensByClass, type Usage } from '@tidemark/core'

const NONE: TokensByClass = { input: 0, cacheRead: 0, write5m: 0, write1h: 0, output: 0 }

/** The tokens one call is billed for, by class, over all of its runs. */
export function billedTokens(usage: Usage): TokensByClass {
  return billedParts(usage).reduce((sum, { tokens }: BilledPart) => addTokens(sum, tokens), NONE)
}

export function addTokens(one: TokensByClass, other: TokensByClass): TokensByClass {
  return {
    input: one.input + other.input,
    cacheRead: one.cacheRead + other.cacheRead,
    write5m: one.write5m + other.write5m,
    write1h: one.write1h + other.write1h,
    output: one.output + other.output,
  }
}
