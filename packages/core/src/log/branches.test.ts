import { Teller } from 'tidemark/testing'
import { describe, expect, it } from 'vitest'

/** The uuids on the branch that counts. */
const branch = (teller: Teller): readonly (string | undefined)[] =>
  teller.session.branch.toArray().map((index) => teller.session.records.at(index)?.uuid)

const call = (id: string) => ({ type: 'tool_use', id, name: 'Read', input: {} })

describe('branches', () => {
  it('a rewind leaves the abandoned prompt and all that followed it', () => {
    const teller = new Teller()
    teller.user('first', { uuid: 'p1' })
    teller.assistant('m1', 'answer', { uuid: 'a1' })
    teller.user('second', { uuid: 'p2' })
    teller.assistant('m2', 'answer', { uuid: 'a2' })
    teller.user('second, said better', { uuid: 'p3', parentUuid: 'a1' })
    expect(branch(teller)).toEqual(['p1', 'a1', 'p3'])
    teller.user('back to the other', { uuid: 'p4', parentUuid: 'a2' })
    expect(branch(teller)).toEqual(['p1', 'a1', 'p2', 'a2', 'p4'])
  })

  it('results of parallel calls hang beside the chain and stay', () => {
    const teller = new Teller()
    teller.user('go', { uuid: 'p1' })
    teller.assistant('m1', [call('c1')], { uuid: 'a1' })
    teller.assistant('m1', [call('c2')], { uuid: 'a2' })
    teller.result('c1', 'one', { uuid: 'r1', parentUuid: 'a1' })
    teller.result('c2', 'two', { uuid: 'r2', parentUuid: 'a2' })
    teller.assistant('m2', 'done', { uuid: 'a3', parentUuid: 'r1' })
    teller.user('and now', { uuid: 'p2', parentUuid: 'a3' })
    expect(branch(teller)).toEqual(['p1', 'a1', 'a2', 'r1', 'r2', 'a3', 'p2'])
  })

  it('a fork in mid-turn drops the response that follows the fork, not the kin of the fork', () => {
    const teller = new Teller()
    teller.user('go', { uuid: 'p1' })
    teller.assistant('m1', [call('c1')], { uuid: 'a1' })
    teller.assistant('m1', [call('c2')], { uuid: 'a2' })
    teller.result('c1', 'one', { uuid: 'r1', parentUuid: 'a1' })
    teller.result('c2', 'two', { uuid: 'r2', parentUuid: 'a2' })
    teller.attachment({ type: 'hook_context', content: 'x' }, { uuid: 't1' })
    teller.assistant('m2', [call('c3')], { uuid: 'a3' })
    teller.result('c3', 'three', { uuid: 'r3' })
    teller.user('no, stop there', { uuid: 'p2', parentUuid: 'r1' })
    expect(branch(teller)).toEqual(['p1', 'a1', 'a2', 'r1', 'r2', 't1', 'a3', 'r3', 'p2'])
    teller.user('stop earlier', { uuid: 'p3', parentUuid: 'r2' })
    expect(branch(teller)).toEqual(['p1', 'a1', 'a2', 'r1', 'r2', 'p3'])
  })

  it('an interruption beside a response keeps the rest of that response and its answers', () => {
    const teller = new Teller()
    teller.user('go', { uuid: 'p1' })
    teller.assistant('m1', [call('c1')], { uuid: 'a1' })
    teller.assistant('m1', [call('c2')], { uuid: 'a2' })
    teller.result('c1', 'one', { uuid: 'r1', parentUuid: 'a1' })
    teller.result('c2', 'two', { uuid: 'r2', parentUuid: 'a2' })
    teller.user('[Request interrupted by user]', { uuid: 'p2', parentUuid: 'a1' })
    expect(branch(teller)).toEqual(['p1', 'a1', 'a2', 'r1', 'r2', 'p2'])
  })

  it('a late result of an abandoned turn does not bring that turn back', () => {
    const teller = new Teller()
    teller.user('first', { uuid: 'p1' })
    teller.assistant('m1', 'hm', { uuid: 'a1' })
    teller.user('second', { uuid: 'p2' })
    teller.assistant('m2', [call('c1')], { uuid: 'a2' })
    teller.user('other', { uuid: 'p3', parentUuid: 'a1' })
    teller.result('c1', 'late', { uuid: 'r1', parentUuid: 'a2' })
    teller.assistant('m3', 'ok', { uuid: 'a3', parentUuid: 'p3' })
    expect(branch(teller)).toEqual(['p1', 'a1', 'p3', 'a3'])
  })

  it('a late result of an earlier turn of the same branch does not leave the present one', () => {
    const teller = new Teller()
    teller.user('first', { uuid: 'p1' })
    teller.assistant('m1', [call('c1')], { uuid: 'a1' })
    teller.user('never mind', { uuid: 'p2' })
    teller.result('c1', 'late', { uuid: 'r1', parentUuid: 'a1' })
    expect(branch(teller)).toEqual(['p1', 'a1', 'p2', 'r1'])
  })

  it('what hangs beside a fork and leads nowhere stays; what leads to the abandoned turn goes', () => {
    const teller = new Teller()
    teller.user('first', { uuid: 'p1' })
    teller.assistant('m1', 'hm', { uuid: 'a1' })
    teller.attachment({ type: 'todo', content: 'x' }, { uuid: 'beside' })
    teller.attachment({ type: 'todo', content: 'y' }, { uuid: 'leads', parentUuid: 'a1' })
    teller.user('second', { uuid: 'p2' })
    teller.user('other', { uuid: 'p3', parentUuid: 'a1' })
    expect(branch(teller)).toEqual(['p1', 'a1', 'beside', 'p3'])
  })

  it('a rewind to before a compaction leaves the compaction', () => {
    const teller = new Teller()
    teller.user('first', { uuid: 'p1' })
    teller.assistant('m1', 'hm', { uuid: 'a1' })
    teller.notice('compact_boundary', { uuid: 'b', parentUuid: null, logicalParentUuid: 'a1' })
    teller.user('Summary: …', { uuid: 's', isCompactSummary: true })
    expect(teller.view.entries.toArray().map((entry) => entry.record.uuid)).toEqual(['b', 's'])
    teller.user('from before', { uuid: 'p2', parentUuid: 'a1' })
    expect(teller.view.entries.toArray().map((entry) => entry.record.uuid)).toEqual(['p1', 'a1', 'p2'])
  })

  it('a prompt put in while a tool was running stays, though the chain of parents passes it by', () => {
    const teller = new Teller()
    teller.user('go', { uuid: 'p1' })
    teller.assistant('m1', [call('c1')], { uuid: 'a1' })
    teller.user('and mind the tests', { uuid: 'p2' })
    teller.result('c1', 'one', { uuid: 'r1', parentUuid: 'a1' })
    teller.assistant('m2', 'done', { uuid: 'a2' })
    teller.user('thanks', { uuid: 'p3' })
    expect(branch(teller)).toEqual(['p1', 'a1', 'p2', 'r1', 'a2', 'p3'])
    teller.user('rather from before that', { uuid: 'p4', parentUuid: 'a1' })
    expect(branch(teller)).toEqual(['p1', 'a1', 'r1', 'p4'])
  })

  it('what followed on another branch does not come along with a result that does', () => {
    const teller = new Teller()
    teller.user('go', { uuid: 'p1' })
    teller.assistant('m1', [call('c1')], { uuid: 'a1' })
    teller.user('anew', { uuid: 'p2', parentUuid: null })
    teller.result('c1', 'late', { uuid: 'r1' })
    teller.assistant('m2', 'hm', { uuid: 'a2' })
    teller.attachment({ type: 'todo', content: 'x' }, { uuid: 't1' })
    teller.user('back', { uuid: 'p3', parentUuid: 'a1' })
    expect(branch(teller)).toEqual(['p1', 'a1', 'r1', 'p3'])
  })

  it('a rewind to the start leaves everything', () => {
    const teller = new Teller()
    teller.user('first', { uuid: 'p1' })
    teller.assistant('m1', 'hm', { uuid: 'a1' })
    teller.user('anew', { uuid: 'p2', parentUuid: null })
    expect(branch(teller)).toEqual(['p2'])
  })
})
