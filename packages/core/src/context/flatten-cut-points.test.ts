import { GeneratorChoices, generateSession, SessionBuilder } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isToolResult, isToolUse, toBlocks } from '../log/block.ts'
import type { KnownRecord } from '../log/record.ts'
import { findCutPointAtOrBefore, findCutPoints, groupIntoRounds } from './flatten-context.ts'

const call = (id: string) => ({ type: 'tool_use', id, name: 'Read', input: {} })
const recordsOf = (builder: SessionBuilder): readonly KnownRecord[] =>
  builder.view.entries.toArray().map((entry) => entry.record)

function told(): readonly KnownRecord[] {
  const builder = new SessionBuilder()
  builder.user('go')
  builder.assistant('m1', [call('c1')])
  builder.assistant('m1', [call('c2')])
  builder.result('c2', 'two')
  builder.result('c1', 'one')
  builder.assistant('m2', 'done')
  builder.user('next')
  builder.assistant('m3', [call('c3')])
  return recordsOf(builder)
}

describe('legal cuts', () => {
  it('never part a response, nor a call from its answer, nor one that waits from what is to come', () => {
    expect(findCutPoints(told())).toEqual([0, 1, 5, 6, 7])
  })

  it('are found on either side of a place', () => {
    const records = told()
    expect([findCutPointAtOrBefore(records, 4), findCutPointAtOrBefore(records, 5)]).toEqual([1, 5])
  })

  it('make rounds that add up to the whole', () => {
    expect(groupIntoRounds(told()).map((round) => round.length)).toEqual([1, 4, 1, 1, 1])
  })

  it('count notices and attachments to the round before them', () => {
    const builder = new SessionBuilder()
    builder.user('go')
    builder.notice('turn_duration')
    builder.assistant('m1', 'done')
    builder.attachment({ type: 'todo', content: 'x' })
    expect(groupIntoRounds(recordsOf(builder)).map((round) => round.length)).toEqual([2, 2])
  })

  it('hold on generated sessions', () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 0xffff }), { minLength: 20, maxLength: 200 }), (numbers) => {
        const records = recordsOf(generateSession(new GeneratorChoices(numbers)).builder)
        expect(groupIntoRounds(records).flat()).toEqual(records)
        for (const cut of findCutPoints(records)) expect(tiesAcross(records, cut)).toEqual([])
      }),
    )
  })
})

/** Ids of responses and answered calls that lie on both sides of the cut. */
function tiesAcross(records: readonly KnownRecord[], cut: number): readonly string[] {
  const before = records.slice(0, cut)
  const behind = records.slice(cut)
  const responses = (list: readonly KnownRecord[]) =>
    list.flatMap((record) => (record.type === 'assistant' ? [record.message.id] : []))
  const calls = (list: readonly KnownRecord[]) =>
    blocks(list).flatMap((block) => (isToolUse(block) ? [block.id] : []))
  const answers = (list: readonly KnownRecord[]) =>
    blocks(list).flatMap((block) => (isToolResult(block) ? [block.tool_use_id] : []))
  const early = new Set(answers(before))
  return [
    ...responses(before).filter((id) => responses(behind).includes(id)),
    ...calls(before).filter((id) => !early.has(id) && answers(behind).includes(id)),
  ]
}

function blocks(records: readonly KnownRecord[]) {
  return records.flatMap((record) =>
    record.type === 'user' || record.type === 'assistant' ? toBlocks(record.message.content) : [],
  )
}
