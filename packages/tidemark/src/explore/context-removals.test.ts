import { SessionBuilder } from '@tidemark/core/testing'
import { expect, it } from 'vitest'
import { addAnswer, createLog, read1, read2, TEXT, usage } from '../../test/inspect-example.ts'
import { listContextRemovals } from './context-removals.ts'

it('what the provider cleared on its side left with the clearing, and not with the compaction after it', () => {
  const builder = new SessionBuilder()
  builder.user('please fix the login')
  addAnswer(builder, 'm1', [read1], { usage: usage(0, 20_000) })
  builder.result('t1', TEXT)
  addAnswer(builder, 'm2', [read2], { usage: usage(20_000, 1_000) })
  builder.result('t2', 'another line of code\n'.repeat(200))
  builder.notice('microcompact_boundary', {
    microcompactMetadata: {
      trigger: 'auto',
      way: 'native',
      preTokens: 21_010,
      tokensSaved: 600,
      compactedToolIds: ['t1'],
      clearedAttachmentUUIDs: [],
    },
  })
  addAnswer(builder, 'm3', [{ type: 'text', text: 'It is a typo.' }], { usage: usage(20_000, 500) })
  builder.notice('compact_boundary', {
    parentUuid: null,
    compactMetadata: { trigger: 'auto', preTokens: 20_510 },
  })
  builder.user('The user wants the login fixed.', { isCompactSummary: true })
  addAnswer(builder, 'm4', [{ type: 'text', text: 'Done.' }], { usage: usage(0, 8_000) })

  const departures = listContextRemovals(createLog(builder, { format: 'tidemark' }))
  expect(
    departures.map(({ kind, request, gone }) => [
      kind,
      request,
      gone.filter((block) => block.kind === 'result').map(({ line }) => line),
    ]),
  ).toEqual([
    ['clearing', 2, [3]],
    ['compaction', 3, [5]],
  ])
})
