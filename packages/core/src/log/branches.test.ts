import { SessionBuilder } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'

/** The uuids on the branch that counts. */
const branch = (builder: SessionBuilder): readonly (string | undefined)[] =>
  builder.session.branch.toArray().map((index) => builder.session.records.at(index)?.uuid)

const call = (id: string) => ({ type: 'tool_use', id, name: 'Read', input: {} })

describe('branches', () => {
  it('a rewind leaves the abandoned prompt and all that followed it', () => {
    const builder = new SessionBuilder()
    builder.user('first', { uuid: 'p1' })
    builder.assistant('m1', 'answer', { uuid: 'a1' })
    builder.user('second', { uuid: 'p2' })
    builder.assistant('m2', 'answer', { uuid: 'a2' })
    builder.user('second, said better', { uuid: 'p3', parentUuid: 'a1' })
    expect(branch(builder)).toEqual(['p1', 'a1', 'p3'])
    builder.user('back to the other', { uuid: 'p4', parentUuid: 'a2' })
    expect(branch(builder)).toEqual(['p1', 'a1', 'p2', 'a2', 'p4'])
  })

  it('results of parallel calls hang beside the chain and stay', () => {
    const builder = new SessionBuilder()
    builder.user('go', { uuid: 'p1' })
    builder.assistant('m1', [call('c1')], { uuid: 'a1' })
    builder.assistant('m1', [call('c2')], { uuid: 'a2' })
    builder.result('c1', 'one', { uuid: 'r1', parentUuid: 'a1' })
    builder.result('c2', 'two', { uuid: 'r2', parentUuid: 'a2' })
    builder.assistant('m2', 'done', { uuid: 'a3', parentUuid: 'r1' })
    builder.user('and now', { uuid: 'p2', parentUuid: 'a3' })
    expect(branch(builder)).toEqual(['p1', 'a1', 'a2', 'r1', 'r2', 'a3', 'p2'])
  })

  it('a fork in mid-turn drops the response that follows the fork, not the kin of the fork', () => {
    const builder = new SessionBuilder()
    builder.user('go', { uuid: 'p1' })
    builder.assistant('m1', [call('c1')], { uuid: 'a1' })
    builder.assistant('m1', [call('c2')], { uuid: 'a2' })
    builder.result('c1', 'one', { uuid: 'r1', parentUuid: 'a1' })
    builder.result('c2', 'two', { uuid: 'r2', parentUuid: 'a2' })
    builder.attachment({ type: 'hook_context', content: 'x' }, { uuid: 't1' })
    builder.assistant('m2', [call('c3')], { uuid: 'a3' })
    builder.result('c3', 'three', { uuid: 'r3' })
    builder.user('no, stop there', { uuid: 'p2', parentUuid: 'r1' })
    expect(branch(builder)).toEqual(['p1', 'a1', 'a2', 'r1', 'r2', 't1', 'a3', 'r3', 'p2'])
    builder.user('stop earlier', { uuid: 'p3', parentUuid: 'r2' })
    expect(branch(builder)).toEqual(['p1', 'a1', 'a2', 'r1', 'r2', 'p3'])
  })

  it('an interruption beside a response keeps the rest of that response and its answers', () => {
    const builder = new SessionBuilder()
    builder.user('go', { uuid: 'p1' })
    builder.assistant('m1', [call('c1')], { uuid: 'a1' })
    builder.assistant('m1', [call('c2')], { uuid: 'a2' })
    builder.result('c1', 'one', { uuid: 'r1', parentUuid: 'a1' })
    builder.result('c2', 'two', { uuid: 'r2', parentUuid: 'a2' })
    builder.user('[Request interrupted by user]', { uuid: 'p2', parentUuid: 'a1' })
    expect(branch(builder)).toEqual(['p1', 'a1', 'a2', 'r1', 'r2', 'p2'])
  })

  it('a late result of an abandoned turn does not bring that turn back', () => {
    const builder = new SessionBuilder()
    builder.user('first', { uuid: 'p1' })
    builder.assistant('m1', 'hm', { uuid: 'a1' })
    builder.user('second', { uuid: 'p2' })
    builder.assistant('m2', [call('c1')], { uuid: 'a2' })
    builder.user('other', { uuid: 'p3', parentUuid: 'a1' })
    builder.result('c1', 'late', { uuid: 'r1', parentUuid: 'a2' })
    builder.assistant('m3', 'ok', { uuid: 'a3', parentUuid: 'p3' })
    expect(branch(builder)).toEqual(['p1', 'a1', 'p3', 'a3'])
  })

  it('a late result of an earlier turn of the same branch does not leave the present one', () => {
    const builder = new SessionBuilder()
    builder.user('first', { uuid: 'p1' })
    builder.assistant('m1', [call('c1')], { uuid: 'a1' })
    builder.user('never mind', { uuid: 'p2' })
    builder.result('c1', 'late', { uuid: 'r1', parentUuid: 'a1' })
    expect(branch(builder)).toEqual(['p1', 'a1', 'p2', 'r1'])
  })

  it('what hangs beside a fork and leads nowhere stays; what leads to the abandoned turn goes', () => {
    const builder = new SessionBuilder()
    builder.user('first', { uuid: 'p1' })
    builder.assistant('m1', 'hm', { uuid: 'a1' })
    builder.attachment({ type: 'todo', content: 'x' }, { uuid: 'beside' })
    builder.attachment({ type: 'todo', content: 'y' }, { uuid: 'leads', parentUuid: 'a1' })
    builder.user('second', { uuid: 'p2' })
    builder.user('other', { uuid: 'p3', parentUuid: 'a1' })
    expect(branch(builder)).toEqual(['p1', 'a1', 'beside', 'p3'])
  })

  it('a rewind to before a compaction leaves the compaction', () => {
    const builder = new SessionBuilder()
    builder.user('first', { uuid: 'p1' })
    builder.assistant('m1', 'hm', { uuid: 'a1' })
    builder.notice('compact_boundary', { uuid: 'b', parentUuid: null, logicalParentUuid: 'a1' })
    builder.user('Summary: …', { uuid: 's', isCompactSummary: true })
    expect(builder.view.entries.toArray().map((entry) => entry.record.uuid)).toEqual(['b', 's'])
    builder.user('from before', { uuid: 'p2', parentUuid: 'a1' })
    expect(builder.view.entries.toArray().map((entry) => entry.record.uuid)).toEqual(['p1', 'a1', 'p2'])
  })

  it('a prompt put in while a tool was running stays, though the chain of parents passes it by', () => {
    const builder = new SessionBuilder()
    builder.user('go', { uuid: 'p1' })
    builder.assistant('m1', [call('c1')], { uuid: 'a1' })
    builder.user('and mind the tests', { uuid: 'p2' })
    builder.result('c1', 'one', { uuid: 'r1', parentUuid: 'a1' })
    builder.assistant('m2', 'done', { uuid: 'a2' })
    builder.user('thanks', { uuid: 'p3' })
    expect(branch(builder)).toEqual(['p1', 'a1', 'p2', 'r1', 'a2', 'p3'])
    builder.user('rather from before that', { uuid: 'p4', parentUuid: 'a1' })
    expect(branch(builder)).toEqual(['p1', 'a1', 'r1', 'p4'])
  })

  it('what followed on another branch does not come along with a result that does', () => {
    const builder = new SessionBuilder()
    builder.user('go', { uuid: 'p1' })
    builder.assistant('m1', [call('c1')], { uuid: 'a1' })
    builder.user('anew', { uuid: 'p2', parentUuid: null })
    builder.result('c1', 'late', { uuid: 'r1' })
    builder.assistant('m2', 'hm', { uuid: 'a2' })
    builder.attachment({ type: 'todo', content: 'x' }, { uuid: 't1' })
    builder.user('back', { uuid: 'p3', parentUuid: 'a1' })
    expect(branch(builder)).toEqual(['p1', 'a1', 'r1', 'p3'])
  })

  it('a rewind to the start leaves everything', () => {
    const builder = new SessionBuilder()
    builder.user('first', { uuid: 'p1' })
    builder.assistant('m1', 'hm', { uuid: 'a1' })
    builder.user('anew', { uuid: 'p2', parentUuid: null })
    expect(branch(builder)).toEqual(['p2'])
  })
})
