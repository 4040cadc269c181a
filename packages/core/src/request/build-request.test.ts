/** Markers that a host brought along go, and lists that grow stay lists that grew out of each other. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { TracedMessage } from '../context/flatten-context.ts'
import type { Block } from '../log/block.ts'
import { AppendList } from '../log/persistent-collections.ts'
import { stripMarkers, stripMessageMarkers, type UnmarkedMessages } from './build-request.ts'

const MARK = { cache_control: { type: 'ephemeral' } }
const said = (content: TracedMessage['message']['content']): TracedMessage => ({
  message: { role: 'user', content },
  origins: ['r'],
})
const text = (fields: object = {}): Block => ({ type: 'text', text: 'x', ...fields })
const result = (...content: readonly Block[]): Block => ({ type: 'tool_result', tool_use_id: 't', content })
const paged = (...content: readonly Block[]): Block => ({
  type: 'document',
  source: { type: 'content', content },
})

describe('a message', () => {
  it.each<[string, Block, Block]>([
    ['with a marker', text(MARK), text()],
    ['with one that says nothing', text({ cache_control: null }), text()],
    ['with one inside a result', result(text(), text(MARK)), result(text(), text())],
    ['with one inside a document', paged(text(MARK)), paged(text())],
    ['with one inside a document of a result', result(paged(text(MARK))), result(paged(text()))],
    ['with both', { ...result(text(MARK)), ...MARK }, result(text())],
  ])('%s loses it, and nothing else', (_, given, expected) => {
    const { message } = stripMessageMarkers(said([text(), given]))
    expect(message.content).toStrictEqual([text(), expected])
  })

  it.each([said('words'), said([text(), result(text())])])('without one stays the same object', (message) => {
    expect(stripMessageMarkers(message)).toBe(message)
  })

  it('keeps the exact text of the other blocks', () => {
    const raw = new Map([
      [0, '{"type":"text","text":"x"}'],
      [1, '{"type":"text","text":"x","cache_control":{}}'],
    ])
    expect(stripMessageMarkers({ ...said([text(), text(MARK)]), raw }).raw).toEqual(
      new Map([[0, raw.get(0)]]),
    )
  })
})

describe('a list', () => {
  const messages = fc.array(fc.boolean().map((isMarked) => said([text(isMarked ? MARK : {})])))

  it('without any is the list that was given', () => {
    const given = { frozen: AppendList.of([said('a'), said([text()])]), tail: [said('b')] }
    const { frozen, tail } = stripMarkers(given)
    expect([frozen === given.frozen, tail === given.tail]).toEqual([true, true])
  })

  it('taken in as it grew is the list taken in at once, and extends what it was', () => {
    fc.assert(
      fc.property(messages, (all) => {
        let given = AppendList.of<TracedMessage>()
        let made: UnmarkedMessages | undefined
        for (const message of all) {
          given = given.push(message)
          const next: UnmarkedMessages = stripMarkers({ frozen: given, tail: [] }, made)
          expect(made === undefined || next.frozen.extends(made.frozen)).toBe(true)
          made = next
        }
        const atOnce = stripMarkers({ frozen: given, tail: [] })
        expect(made?.frozen.toArray() ?? []).toEqual(atOnce.frozen.toArray())
      }),
    )
  })
})
