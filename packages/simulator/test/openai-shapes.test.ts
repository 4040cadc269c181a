/** What the simulator sends is what was recorded, which the compiler has compared with the types of the SDK. */
import { expect, it } from 'vitest'
import { collectShapes } from './openai-shape-cases.ts'
import * as recorded from './openai-shapes.ts'

const sent = await collectShapes()

it('all kinds of answers were recorded', () => {
  expect(Object.keys(sent).toSorted()).toEqual(Object.keys(recorded).toSorted())
})

it.each(Object.entries(recorded))('%s has the shape of the SDK', (name, shape) => {
  expect(sent[name]).toEqual(shape)
})
