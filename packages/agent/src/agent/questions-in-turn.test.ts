/** Questions of several agents to one user. */
import { expect, it } from 'vitest'
import type { AgentOptions } from './agent-options.ts'
import { queueQuestionsInOptions } from './agent-permissions.ts'

it('a question of an agent that was stopped while it waited is not asked; the next one is', async () => {
  const asked: string[] = []
  const first = Promise.withResolvers<void>()
  const options: Pick<AgentOptions, 'askUser'> = {
    askUser: async ([question]) => {
      asked.push(question?.question ?? '')
      if (asked.length === 1) await first.promise
      return [['yes']]
    },
  }
  const { askUser } = queueQuestionsInOptions(options as AgentOptions)
  const ask = (question: string, signal = new AbortController().signal) =>
    askUser?.([{ question, options: [] }], signal)
  const stopped = new AbortController()
  const answers = [ask('one'), ask('two', stopped.signal), ask('three')]
  stopped.abort()
  first.resolve()
  expect((await Promise.allSettled(answers)).map(({ status }) => status)).toEqual([
    'fulfilled',
    'rejected',
    'fulfilled',
  ])
  expect(asked).toEqual(['one', 'three'])
})
