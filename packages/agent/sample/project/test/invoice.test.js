import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addItem, createCart, removeItem } from '../src/cart.js'
import { createInvoice, printInvoice } from '../src/invoice.js'
import { formatCents, splitCents } from '../src/money.js'

const MUG = { id: 'mug', name: 'Mug', price: 19.99 }
const TEA = { id: 'tea', name: 'Green tea', price: 4.35 }
const TIN = { id: 'tin', name: 'Tin', price: 8.29 }

const fill = (...products) => products.reduce((cart, product) => addItem(cart, product), createCart())

test('the same product twice is one line', () => {
  assert.deepEqual(createInvoice(fill(MUG, MUG)).lines.length, 1)
})

test('a removed product is not charged', () => {
  assert.equal(createInvoice(removeItem(fill(MUG), 'mug')).total, 0)
})

test('cents are printed with two digits', () => {
  assert.equal(formatCents(105), '1.05')
})

test('a mug costs what the catalogue says', () => {
  assert.equal(createInvoice(fill(MUG)).total, 1999)
})

test('shares of an amount add up to it', () => {
  assert.equal(
    splitCents(100, [1, 1, 1]).reduce((sum, share) => sum + share),
    100,
  )
})

test('an invoice with a discount is right to the cent', () => {
  const { total, tax } = createInvoice(fill(MUG, TEA, TIN), { discount: 10 })
  assert.deepEqual({ total, tax }, { total: 2937, tax: 469 })
})

test('the printed invoice shows the total', () => {
  assert.match(printInvoice(createInvoice(fill(TEA), { number: '7' })), /^Invoice 7\n.*\nTotal 4.35\n/)
})
