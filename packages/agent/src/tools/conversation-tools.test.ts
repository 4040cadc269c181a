import { expect, it } from 'vitest'
import { createAgentFolder } from '../../test/agent-folder.ts'
import { createConversationTools } from './conversation-tools.ts'
import type { AgentTool } from './tool-definition.ts'
import type { ToolEnvironment } from './tool-environment.ts'

function open(given: Partial<ToolEnvironment> = {}) {
  const folder = createAgentFolder(given)
  const tools = createConversationTools(folder.environment) as Record<'TodoWrite' | 'AskUser', AgentTool>
  return { folder, tools }
}

const QUESTION = { question: 'Which port?', options: [{ label: '80' }, { label: '8080' }] }

it('the todo list is handed on whole and answered shortly', async () => {
  const lists: unknown[] = []
  const { folder, tools } = open({ onTodos: (todos) => lists.push(todos) })
  const todos = [
    { content: 'Read', status: 'completed' },
    { content: 'Write', status: 'in_progress', activeForm: 'Writing' },
    { content: 'Test', status: 'pending' },
  ]
  expect((await folder.call(tools.TodoWrite, { todos })).text).toBe(
    'The todo list has 3 items: 1 completed, 1 in progress, 1 pending.',
  )
  expect(await folder.call(tools.TodoWrite, { todos: [{ content: ' ', status: 'pending' }] })).toMatchObject({
    isError: true,
  })
  expect(lists).toEqual([todos])
})

it('questions are answered by the user, in order', async () => {
  const { folder, tools } = open({ askUser: async () => [['80', '8080'], []] })
  const { text } = await folder.call(tools.AskUser, {
    questions: [QUESTION, { question: 'Why?', options: [] }],
  })
  expect(text).toBe('Which port?\nAnswer: 80, 8080\nWhy?\nAnswer: (skipped)')
  expect(await folder.call(tools.AskUser, { questions: [] })).toMatchObject({ isError: true })
})

it('without a user, the model is told to go on with its best assumption and to state it', async () => {
  const { folder, tools } = open()
  expect(await folder.call(tools.AskUser, { questions: [QUESTION] })).toMatchObject({
    text: 'Nobody can answer in this session. Go on with the assumption that fits best, and state it in your answer.',
    isError: true,
  })
})
