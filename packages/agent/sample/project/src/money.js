/** Amounts of money are whole cents; only the catalogue and the screen know euros. */

/** Converts euros, such as 19.99, to cents. */
export function toCents(euros) {
  return Math.floor(euros * 100)
}

/** Formats cents for the screen: 1999 is 19.99. */
export function formatCents(cents) {
  const sign = cents < 0 ? '-' : ''
  const amount = Math.abs(cents)
  return `${sign}${Math.floor(amount / 100)}.${String(amount % 100).padStart(2, '0')}`
}

/** Splits an amount into shares in proportion to the weights. */
export function splitCents(cents, weights) {
  const sum = weights.reduce((all, weight) => all + weight, 0)
  return weights.map((weight) => Math.floor((cents * weight) / sum))
}
