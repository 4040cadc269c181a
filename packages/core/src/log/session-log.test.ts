import { SessionBuilder } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'

const kinds = (builder: SessionBuilder): readonly string[] =>
  builder.session.damage.toArray().map((item) => item.kind)
const shown = (builder: SessionBuilder): readonly string[] =>
  builder.view.entries.toArray().map((entry) => entry.record.uuid)

describe('damage to the tree is told and costs nobody its place', () => {
  it('a missing parent', () => {
    const builder = new SessionBuilder()
    builder.user('one', { uuid: 'p1' })
    builder.assistant('m1', 'two', { uuid: 'a1', parentUuid: 'lost' })
    builder.user('three', { uuid: 'p2' })
    expect([kinds(builder), shown(builder)]).toEqual([['missing-parent'], ['p1', 'a1', 'p2']])
    expect(builder.session.damage.at(0)).toMatchObject({ line: 2, why: expect.stringContaining('lost') })
  })

  it('a record that does not say what it follows: null would mean nothing, saying nothing does not', () => {
    const builder = new SessionBuilder()
    builder.user('one', { uuid: 'p1' })
    builder.user('two', { uuid: 'p2', parentUuid: undefined as never })
    expect([kinds(builder), shown(builder)]).toEqual([['missing-parent'], ['p1', 'p2']])
  })

  it('a copy of a line, which is left out', () => {
    const builder = new SessionBuilder()
    builder.user('one', { uuid: 'p1' })
    const said = builder.assistant('m1', 'two', { uuid: 'a1' })
    builder.user('three', { uuid: 'p2' })
    builder.foreign(said)
    expect([kinds(builder), shown(builder)]).toEqual([['duplicate-uuid'], ['p1', 'a1', 'p2']])
  })

  it('two different lines with one uuid, both of which stay', () => {
    const builder = new SessionBuilder()
    builder.user('one', { uuid: 'p1' })
    builder.assistant('m1', 'two', { uuid: 'x' })
    builder.assistant('m2', 'other', { uuid: 'x' })
    expect([kinds(builder), shown(builder)]).toEqual([['duplicate-uuid'], ['p1', 'x', 'x']])
  })

  it('a record that is its own parent, and two that are each other’s', () => {
    const builder = new SessionBuilder()
    builder.user('one', { uuid: 'p1', parentUuid: 'p1' })
    builder.assistant('m1', 'two', { uuid: 'a1', parentUuid: 'a2' })
    builder.assistant('m1', 'three', { uuid: 'a2', parentUuid: 'a1' })
    expect(kinds(builder)).toEqual(['cyclic-parent', 'missing-parent', 'cyclic-parent'])
    expect(shown(builder)).toEqual(['p1', 'a1', 'a2'])
  })

  it('a boundary that names a record from elsewhere stands behind the line before', () => {
    const builder = new SessionBuilder()
    builder.user('one', { uuid: 'p1' })
    builder.notice('compact_boundary', { uuid: 'b', parentUuid: null, logicalParentUuid: 'elsewhere' })
    builder.user('Summary: …', { uuid: 's', isCompactSummary: true })
    expect([kinds(builder), shown(builder)]).toEqual([[], ['b', 's']])
  })
})

describe('lines of others', () => {
  it('have a place in the log and none in the view', () => {
    const builder = new SessionBuilder()
    builder.user('one', { uuid: 'p1' })
    builder.user('to the subagent', { uuid: 'side', isSidechain: true })
    builder.foreign({ type: 'file-history-snapshot' })
    builder.foreign({ type: 'new-kind', uuid: 'n', parentUuid: 'p1' })
    builder.assistant('m1', 'two', { uuid: 'a1', parentUuid: 'n' })
    expect([builder.session.records.length, shown(builder), kinds(builder)]).toEqual([5, ['p1', 'a1'], []])
  })
})
