/** Tax. Prices include it, so it is computed from the total, once for each invoice. */

export const STANDARD_RATE = 19
export const REDUCED_RATE = 7

/** Returns the tax that a total contains, in cents. */
export function includedTax(total, rate = STANDARD_RATE) {
  return Math.round((total * rate) / (100 + rate))
}
