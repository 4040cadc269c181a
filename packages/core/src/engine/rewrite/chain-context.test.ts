import { Teller } from 'tidemark/testing'
import { describe, expect, it } from 'vitest'
import { roomy } from '../../../test/engine/roomy.ts'
import { chainContext } from './chain-context.ts'
import { planCompaction } from './compaction-plan.ts'

function told(usage: { input_tokens: number; output_tokens: number } | null): Teller {
  const teller = new Teller('told')
  teller.user('go')
  teller.assistant('m-1', [{ type: 'tool_use', id: 'c-1', name: 'Read', input: {} }])
  teller.result('c-1', 'abc '.repeat(500))
  const content = [{ type: 'text', text: 'read' }]
  const message = { id: 'm-2', role: 'assistant' as const, model: 'model-a', content }
  teller.assistant('m-2', content, usage === null ? {} : { message: { ...message, usage } })
  teller.notice('microcompact_boundary', {
    microcompactMetadata: {
      trigger: 'auto',
      way: 'native',
      preTokens: 9_000,
      tokensSaved: 4_000,
      compactedToolIds: ['c-1'],
      clearedAttachmentUUIDs: [],
    },
  })
  return teller
}

describe('what the chain of asking is told', () => {
  it.each([
    [
      'what the provider cleared is not in what it measured',
      { input_tokens: 5_000, output_tokens: 10 },
      4_000,
    ],
    ['an estimate of the view holds it already', null, 0],
  ])('%s', async (_, usage, more) => {
    const { run, room, host } = await roomy(told(usage).records)
    const plan = planCompaction(run.state, { trigger: 'manual', cause: 'person' }, { host, room })
    if (!plan.ok) throw new Error(plan.message)
    const { unclearedTokens } = chainContext(run, room, { plan, instructions: null })
    expect(unclearedTokens - plan.before.expected).toBe(more)
  })
})
