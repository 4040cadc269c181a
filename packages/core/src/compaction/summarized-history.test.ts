import { SessionBuilder } from '@tidemark/core/testing'
import { expect, it } from 'vitest'
import { openTestSession } from '../../test/engine/test-session.ts'
import { planCompaction } from './plan-compaction.ts'
import { readSummarizedHistory } from './summarized-history.ts'

it('a summary knows the open tasks of a todo tool that only the policy names', async () => {
  const session = new SessionBuilder()
  session.user('Begin.')
  session.call('board', { cards: [{ content: 'Write the parser', status: 'pending' }] }, 'ok')
  session.answer()
  const { run, room, host } = await openTestSession(session.records, {
    policy: { rehydrate: { todoTools: ['board'] } },
  })
  const plan = planCompaction(run.state, { trigger: 'manual', cause: 'person' }, { host, compaction: room })
  if (!plan.ok) throw new Error(plan.message)
  const history = await readSummarizedHistory(run, room, plan)
  expect(history?.facts.todos).toEqual([{ text: 'Write the parser', status: 'pending' }])
})

it('a prompt whose answer is among the messages kept counts as answered, so that it is cut and not left out', async () => {
  const session = new SessionBuilder()
  session.user('Begin.')
  session.answer()
  session.user(`Now the long part. ${'word '.repeat(400)}`)
  const pivot = session.answer('I am at it.')
  session.user('Go on.')
  session.answer()
  const { run, room, host } = await openTestSession(session.records)
  const request = { trigger: 'auto', cause: 'threshold', form: 'up_to', pivot: pivot.uuid } as const
  const plan = planCompaction(run.state, request, { host, compaction: room })
  if (!plan.ok) throw new Error(plan.message)
  const history = await readSummarizedHistory(run, room, plan)
  expect(history?.facts.messages.map(({ text, isAnswered }) => [text.slice(0, 12), isAnswered])).toEqual([
    ['Begin.', true],
    ['Now the long', true],
  ])
})
