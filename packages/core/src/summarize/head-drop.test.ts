import { Teller } from 'tidemark/testing'
import { describe, expect, it } from 'vitest'
import type { Entry } from '../view/entry.ts'
import { dropHead, metaRecord, roundsOfEntries, TRUNCATION_MARKER, withMarker } from './head-drop.ts'
import { MOST_PARTS, splitParts } from './parts.ts'

/** `count` rounds of a call and its result, 10 tokens a record, behind a prompt. */
function rounds(count: number): readonly Entry[] {
  const teller = new Teller()
  teller.user('go', { uuid: 'q' })
  for (let index = 0; index < count; index += 1) {
    teller.assistant(`m${index}`, [{ type: 'tool_use', id: `c${index}`, name: 'Read', input: {} }], {
      uuid: `a${index}`,
    })
    teller.result(`c${index}`, 'x', { uuid: `r${index}` })
  }
  return teller.view.entries.toArray()
}

const tokensOf = (): number => 10
const policy = { percentOfRounds: 20, minimumRounds: 1 }
const uuids = (entries: readonly Entry[] | undefined): readonly string[] =>
  (entries ?? []).map((entry) => entry.record.uuid)
const marker: Entry = { record: metaRecord('mark', TRUNCATION_MARKER), index: -1 }

describe('dropping the head', () => {
  it.each<[string, number, number | null, number]>([
    ['rounds until the gap is covered', 9, 45, 3],
    ['a gap that one round covers exactly', 9, 10, 1],
    ['a fifth of the rounds where nothing is known', 9, null, 2],
    ['at least one', 2, null, 1],
    ['a gap that is none is not known', 9, 0, 2],
  ])('%s', (_, count, over, dropped) => {
    const entries = rounds(count)
    const drop = dropHead(entries, { over, tokensOf, policy })
    const all = roundsOfEntries(entries)
    expect(uuids(drop?.dropped)).toEqual(uuids(all.slice(0, dropped).flat()))
    expect(uuids(drop?.rest)).toEqual(uuids(all.slice(dropped).flat()))
  })

  it('never parts a call from its result', () => {
    expect(uuids(dropHead(rounds(3), { over: 15, tokensOf, policy })?.rest)).toEqual(['a1', 'r1', 'a2', 'r2'])
  })

  it.each([
    ['a gap as large as everything', 5, 1_000],
    ['a single round', 0, null],
  ])('%s leaves nothing', (_, count, over) => {
    expect(dropHead(rounds(count), { over, tokensOf, policy })).toBeNull()
  })

  it('the marker of an earlier retry is no round', () => {
    const entries = [marker, ...rounds(9).slice(1)]
    const drop = dropHead(entries, { over: null, tokensOf, policy: { ...policy, percentOfRounds: 1 } })
    expect(uuids(drop?.dropped)).toEqual(['a0', 'r0'])
  })

  it('what only looks like the marker is a message', () => {
    const typed: Entry = { record: { ...metaRecord('mark', TRUNCATION_MARKER), isMeta: false }, index: 0 }
    expect(uuids(dropHead([typed, ...rounds(1)], { over: null, tokensOf, policy })?.dropped)).toEqual([
      'mark',
    ])
  })

  it('the marker stands in front of a response and of nothing else', () => {
    expect(uuids(withMarker(rounds(2), TRUNCATION_MARKER))[0]).toBe('q')
    expect(withMarker(rounds(2).slice(1), TRUNCATION_MARKER)[0]?.record).toMatchObject({
      isMeta: true,
      message: { role: 'user', content: TRUNCATION_MARKER },
    })
  })
})

describe('parts', () => {
  const tokens = 5_000
  const room = { tokens, outputTokens: 20_000, tokensOf: () => 1_000 }

  it('hold whole rounds, as many as fit, and leave room to be put together', () => {
    const split = splitParts(rounds(6), room)
    expect(split?.outputTokens).toBe(500)
    expect(split?.parts.map(uuids)).toEqual([
      ['q', 'a0', 'r0'],
      ['a1', 'r1', 'a2', 'r2'],
      ['a3', 'r3', 'a4', 'r4'],
      ['a5', 'r5'],
    ])
    expect(split?.covered).toEqual([])
    expect((split?.outputTokens ?? 0) * MOST_PARTS).toBeLessThan(tokens)
  })

  it('what fits into none is covered, and so are the oldest where there are too many', () => {
    const sizes = (entry: Entry): number => (entry.record.uuid === 'r2' ? 9_000 : 2_000)
    const split = splitParts(rounds(12), { ...room, tokensOf: sizes })
    expect(split?.parts).toHaveLength(MOST_PARTS)
    expect(uuids(split?.covered)).toEqual(['q', 'a0', 'r0', 'a1', 'r1', 'a2', 'r2', 'a3', 'r3'])
  })

  it.each([
    ['a window that holds no two summaries', rounds(3), 1_000],
    ['rounds all too large', rounds(3).slice(1), 1_800],
    ['nothing', [], 5_000],
  ])('%s: none', (_, entries, size) => {
    expect(splitParts(entries, { ...room, tokens: size })).toBeNull()
  })
})
