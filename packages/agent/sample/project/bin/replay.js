/**
 * Replays the orders of a week and compares each invoice with what the customer paid, which the bank computes in whole
 * cents. Writes reports/monday.txt and so on, and prints a line for each day. Usage: node bin/replay.js
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { addItem, createCart } from '../src/cart.js'
import { createInvoice } from '../src/invoice.js'
import { formatCents } from '../src/money.js'

const PRODUCTS = [
  { id: 'tea', name: 'Green tea', cents: 435 },
  { id: 'mug', name: 'Mug', cents: 1999 },
  { id: 'pot', name: 'Tea pot', cents: 3395 },
  { id: 'tin', name: 'Tin', cents: 829 },
  { id: 'tray', name: 'Tray', cents: 1601 },
  { id: 'spoon', name: 'Spoon', cents: 257 },
]
const DAYS = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday']
const ORDERS_A_DAY = 90
const DISCOUNTS = [0, 0, 5, 10, 15]

mkdirSync('reports', { recursive: true })
for (const [index, day] of DAYS.entries()) {
  const random = createRandom(index + 1)
  const orders = Array.from({ length: ORDERS_A_DAY }, () => checkOrder(createOrder(random)))
  const lines = orders.map(({ text }, at) => `${day.slice(0, 3)}-${String(at + 1).padStart(3, '0')}  ${text}`)
  writeFileSync(`reports/${day}.txt`, `${lines.join('\n')}\n`)
  const different = orders.filter(({ isRight }) => !isRight).length
  console.log(`${day}: ${different} of ${ORDERS_A_DAY} invoices differ from what was paid`)
}

/** Compares the invoice of an order with what the bank charged. */
function checkOrder({ items, discount }) {
  const cart = items.reduce(
    (all, { product, quantity }) => addItem(all, { ...product, price: product.cents / 100 }, quantity),
    createCart(),
  )
  const { total, tax } = createInvoice(cart, { discount })
  const subtotal = items.reduce((sum, { product, quantity }) => sum + product.cents * quantity, 0)
  const paid = subtotal - Math.round((subtotal * discount) / 100)
  const list = items.map(({ product, quantity }) => `${quantity} ${product.id}`).join(', ')
  const verdict = total === paid ? 'ok' : `DIFFERS by ${formatCents(total - paid)}`
  const invoice = `invoice ${formatCents(total)} with tax ${formatCents(tax)}`
  return {
    isRight: total === paid,
    text: `${list}; discount ${discount}%; ${invoice}; paid ${formatCents(paid)}: ${verdict}`,
  }
}

function createOrder(random) {
  const first = Math.floor(random() * PRODUCTS.length)
  const count = 1 + Math.floor(random() * 3)
  const items = Array.from({ length: count }, (_, index) => ({
    product: PRODUCTS[(first + index) % PRODUCTS.length],
    quantity: 1 + Math.floor(random() * 4),
  }))
  return { items, discount: DISCOUNTS[Math.floor(random() * DISCOUNTS.length)] }
}

/** The same seed gives the same orders. */
function createRandom(seed) {
  let state = seed * 7_919
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}
