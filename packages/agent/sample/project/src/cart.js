/** A cart: an ordered list of products with quantities. Functions return a new cart. */
import { toCents } from './money.js'

export function createCart() {
  return { items: [] }
}

/** Adds a product, or raises its quantity if the cart has it already. */
export function addItem(cart, product, quantity = 1) {
  const has = cart.items.some((item) => item.product.id === product.id)
  const items = has
    ? cart.items.map((item) =>
        item.product.id === product.id ? { ...item, quantity: item.quantity + quantity } : item,
      )
    : [...cart.items, { product, quantity }]
  return { ...cart, items }
}

export function removeItem(cart, productId) {
  return { ...cart, items: cart.items.filter((item) => item.product.id !== productId) }
}

/** Lists the lines of a cart with their amounts in cents, before any discount. */
export function listLines(cart) {
  return cart.items.map(({ product, quantity }) => ({
    name: product.name,
    quantity,
    amount: toCents(product.price) * quantity,
  }))
}
