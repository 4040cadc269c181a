import { Teller } from 'tidemark/testing'
import { describe, expect, it } from 'vitest'

const kinds = (teller: Teller): readonly string[] => teller.session.damage.toArray().map((item) => item.kind)
const shown = (teller: Teller): readonly string[] =>
  teller.view.entries.toArray().map((entry) => entry.record.uuid)

describe('damage to the tree is told and costs nobody its place', () => {
  it('a missing parent', () => {
    const teller = new Teller()
    teller.user('one', { uuid: 'p1' })
    teller.assistant('m1', 'two', { uuid: 'a1', parentUuid: 'lost' })
    teller.user('three', { uuid: 'p2' })
    expect([kinds(teller), shown(teller)]).toEqual([['missing-parent'], ['p1', 'a1', 'p2']])
    expect(teller.session.damage.at(0)).toMatchObject({ line: 2, why: expect.stringContaining('lost') })
  })

  it('a record that does not say what it follows: null would mean nothing, saying nothing does not', () => {
    const teller = new Teller()
    teller.user('one', { uuid: 'p1' })
    teller.user('two', { uuid: 'p2', parentUuid: undefined as never })
    expect([kinds(teller), shown(teller)]).toEqual([['missing-parent'], ['p1', 'p2']])
  })

  it('a copy of a line, which is left out', () => {
    const teller = new Teller()
    teller.user('one', { uuid: 'p1' })
    const said = teller.assistant('m1', 'two', { uuid: 'a1' })
    teller.user('three', { uuid: 'p2' })
    teller.foreign(said)
    expect([kinds(teller), shown(teller)]).toEqual([['duplicate-uuid'], ['p1', 'a1', 'p2']])
  })

  it('two different lines with one uuid, both of which stay', () => {
    const teller = new Teller()
    teller.user('one', { uuid: 'p1' })
    teller.assistant('m1', 'two', { uuid: 'x' })
    teller.assistant('m2', 'other', { uuid: 'x' })
    expect([kinds(teller), shown(teller)]).toEqual([['duplicate-uuid'], ['p1', 'x', 'x']])
  })

  it('a record that is its own parent, and two that are each other’s', () => {
    const teller = new Teller()
    teller.user('one', { uuid: 'p1', parentUuid: 'p1' })
    teller.assistant('m1', 'two', { uuid: 'a1', parentUuid: 'a2' })
    teller.assistant('m1', 'three', { uuid: 'a2', parentUuid: 'a1' })
    expect(kinds(teller)).toEqual(['cyclic-parent', 'missing-parent', 'cyclic-parent'])
    expect(shown(teller)).toEqual(['p1', 'a1', 'a2'])
  })

  it('a boundary that names a record from elsewhere stands behind the line before', () => {
    const teller = new Teller()
    teller.user('one', { uuid: 'p1' })
    teller.notice('compact_boundary', { uuid: 'b', parentUuid: null, logicalParentUuid: 'elsewhere' })
    teller.user('Summary: …', { uuid: 's', isCompactSummary: true })
    expect([kinds(teller), shown(teller)]).toEqual([[], ['b', 's']])
  })
})

describe('lines of others', () => {
  it('have a place in the log and none in the view', () => {
    const teller = new Teller()
    teller.user('one', { uuid: 'p1' })
    teller.user('to the subagent', { uuid: 'side', isSidechain: true })
    teller.foreign({ type: 'file-history-snapshot' })
    teller.foreign({ type: 'new-kind', uuid: 'n', parentUuid: 'p1' })
    teller.assistant('m1', 'two', { uuid: 'a1', parentUuid: 'n' })
    expect([teller.session.records.length, shown(teller), kinds(teller)]).toEqual([5, ['p1', 'a1'], []])
  })
})

describe('pins', () => {
  it('the newest word on a record counts, on whatever branch it was said', () => {
    const teller = new Teller()
    teller.user('one', { uuid: 'p1' })
    teller.notice('pin', { pin: { target: 'p1', pinned: true } })
    teller.notice('pin', { pin: { target: 'p9', pinned: true } })
    teller.notice('pin', { pin: { target: 'p9', pinned: false } })
    teller.user('anew', { uuid: 'p2', parentUuid: null })
    expect(teller.session.pins).toEqual(['p1'])
  })
})
