/** Discounts: a percentage of the cart, spread over its lines so that each line shows what it costs. */
import { splitCents } from './money.js'

/** Returns the discount on an amount, in cents. */
export function computeDiscount(cents, percent) {
  return Math.round((cents * percent) / 100)
}

/** Returns the lines with their share of the discount taken off. */
export function applyDiscount(lines, percent) {
  if (percent === 0 || lines.length === 0) return lines
  const subtotal = lines.reduce((sum, { amount }) => sum + amount, 0)
  const shares = splitCents(
    computeDiscount(subtotal, percent),
    lines.map(({ amount }) => amount),
  )
  return lines.map((line, index) => ({ ...line, amount: line.amount - shares[index] }))
}
