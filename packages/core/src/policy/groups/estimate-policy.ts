/** How large a thing is before a provider has said so, and how large a request may be in bytes and images. */
import { amount, count, flag } from '../check.ts'
import { type Fields, field } from '../field.ts'

export interface EstimatePolicy {
  /** Characters of text to a token, before anything was learnt and where the catalogue has no figure. */
  readonly charactersPerToken: number
  /** Tokens, flat, where the dimensions are not known. */
  readonly imageTokens: number
  /** Tokens, flat. */
  readonly documentTokens: number
  /** Decisions use the expected figure times this, rounded up: better to overshoot than to overflow. */
  readonly highFactor: number
  /** Learn from the usage that each response reports, and narrow `highFactor` as the errors shrink. */
  readonly calibrate: boolean
  /** The narrowest that a learnt factor may become. */
  readonly narrowestHighFactor: number
  /** Thinking whose text is hidden: tokens to a character of its signature … */
  readonly signatureTokensPerCharacter: number
  /** … less this many tokens. */
  readonly signatureLessTokens: number
}

export interface RequestPolicy {
  /** Bytes of the largest body sent. Over it the oldest images become placeholders. */
  readonly bodyBytes: number
  /** Images and documents in a request. */
  readonly images: number
  /** The same for a window of at most `smallWindowTokens`, and for an unknown one. */
  readonly imagesInSmallWindow: number
  /** Tokens. */
  readonly smallWindowTokens: number
}

export const estimateFields: Fields<EstimatePolicy> = {
  charactersPerToken: field(4, amount(0.5, 20)),
  imageTokens: field(2_000, count()),
  documentTokens: field(2_000, count()),
  highFactor: field(4 / 3, amount(1, 10)),
  calibrate: field(true, flag()),
  narrowestHighFactor: field(1.05, amount(1, 10)),
  signatureTokensPerCharacter: field(0.205, amount(0, 10)),
  signatureLessTokens: field(38, count()),
}

export const requestFields: Fields<RequestPolicy> = {
  bodyBytes: field(32_000_000, count(1_000)),
  images: field(600, count()),
  imagesInSmallWindow: field(100, count()),
  smallWindowTokens: field(200_000, count()),
}
