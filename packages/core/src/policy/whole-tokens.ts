/** Rounds down, but not past the noise of binary fractions: 180,000 × 33.3% is 59,940 and not 59,939.999… */
export function wholeTokens(exact: number): number {
  return Math.floor(exact + 1e-6)
}
