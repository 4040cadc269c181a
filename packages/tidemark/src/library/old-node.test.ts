import { anthropic, createTidemark } from 'tidemark'
import { afterEach, expect, it } from 'vitest'

const { withResolvers } = Promise
afterEach(() => {
  Promise.withResolvers = withResolvers
})

it('an old Node is named when the engine is created, not passed over until the window is full', () => {
  Reflect.deleteProperty(Promise, 'withResolvers')
  const create = () =>
    createTidemark({ model: anthropic('claude-sonnet-5-5', { apiKey: 'any' }), memory: true })
  expect(create).toThrow(/^tidemark needs Node 22\.12 or newer; this is Node [\d.]+\.$/)
})
