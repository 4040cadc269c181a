/** Invoices: a cart with its discount and tax, ready to be printed and paid. */
import { listLines } from './cart.js'
import { applyDiscount } from './discount.js'
import { formatCents } from './money.js'
import { includedTax, STANDARD_RATE } from './tax.js'

export function createInvoice(cart, { number = '1', discount = 0, rate = STANDARD_RATE } = {}) {
  const lines = applyDiscount(listLines(cart), discount)
  const total = lines.reduce((sum, { amount }) => sum + amount, 0)
  return { number, lines, total, tax: includedTax(total, rate), rate }
}

export function printInvoice({ number, lines, total, tax, rate }) {
  const rows = lines.map(
    ({ name, quantity, amount }) => `${quantity} x ${name.padEnd(24)} ${formatCents(amount).padStart(9)}`,
  )
  const last = [`Total ${formatCents(total)}`, `Tax of ${rate}% in it: ${formatCents(tax)}`]
  return [`Invoice ${number}`, ...rows, ...last].join('\n')
}
