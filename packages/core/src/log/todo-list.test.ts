import { SessionBuilder } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { createCarryContext } from '../../test/carry/carried-session.ts'
import { CodingSession } from '../../test/summarize/coding-session.ts'
import { todosSource } from '../sources/builtin-sources.ts'
import { collectSources } from '../sources/collect-sources.ts'
import { extractSessionFacts } from '../summary/session-facts.ts'
import { isOpenTodo, isTodoInProgress, readTodoList, type TodoItem } from './todo-list.ts'
import { listToolRuns } from './tool-calls.ts'

type Call = readonly [tool: string, input: object, result?: string]

function session(calls: readonly Call[]): CodingSession {
  const work = new CodingSession(new SessionBuilder('todos'))
  for (const [tool, input, result = 'ok'] of calls) work.calls(tool, input, result)
  return work
}

const todo = (text: string, status = 'pending'): TodoItem => ({ text, status })
const listed: Call = ['TodoWrite', { todos: [{ content: 'old', status: 'pending' }] }]

describe('the summary and the todos source read the same list', () => {
  it.each<[string, readonly Call[], readonly TodoItem[]]>([
    [
      'a list written whole',
      [listed, ['TodoWrite', { todos: [{ content: 'a', status: 'in_progress', activeForm: 'Doing a' }] }]],
      [todo('a', 'in_progress')],
    ],
    [
      'a plan of Codex',
      [['update_plan', { explanation: 'x', plan: [{ step: 'a', status: 'completed' }] }]],
      [todo('a', 'completed')],
    ],
    [
      'the list of a tool of another name',
      [['my_list', { todos: [{ title: 'a', status: 'cancelled' }] }]],
      [todo('a', 'cancelled')],
    ],
    [
      'plain texts, from a tool known for its lists',
      [['TodoWrite', { items: ['a', { text: 'b', done: true }, 3] }]],
      [todo('a'), todo('b', 'completed')],
    ],
    [
      'tasks created and updated one by one',
      [
        ['TaskCreate', { subject: 'a', description: 'long' }, 'Task #7 created successfully: a'],
        ['TaskCreate', { subject: 'b' }, 'Task #8 created successfully: b'],
        ['TaskCreate', { subject: 'c' }, 'Task #9 created successfully: c'],
        ['TaskUpdate', { taskId: '7', status: 'completed' }],
        ['TaskUpdate', { taskId: '8', subject: 'B', description: 'longer' }],
        ['TaskUpdate', { taskId: '9', status: 'deleted' }],
        ['TaskList', {}, '#7 [completed] a'],
      ],
      [todo('a', 'completed'), todo('B')],
    ],
    [
      'tasks under other names, whose ids are in JSON or are their numbers',
      [
        ['create_task', { title: 'a' }, '{"id": 4}'],
        ['add_todo', { description: 'b' }],
        ['update_task', { id: 4, status: 'in_progress' }],
        ['update_todo', { id: '2', status: 'done' }],
      ],
      [todo('a', 'in_progress'), todo('b', 'done')],
    ],
    ['an emptied list', [listed, ['TodoWrite', { todos: [] }]], []],
    ['an emptied plan', [listed, ['update_plan', { plan: [] }]], []],
    [
      'no lists of anything else',
      [
        listed,
        ['file_issues', { issues: [{ title: 'x', status: 'open' }] }],
        ['schedule', { tasks: [] }],
        ['send_mail', { subject: 'x', to: 'y' }],
        ['mcp__tracker__create_task', { title: 'x' }],
        ['Task', { description: 'look around', prompt: 'Look.' }],
        ['TaskUpdate', { taskId: '99', status: 'completed' }],
      ],
      [todo('old')],
    ],
    ['nothing', [['Bash', { command: 'ls' }]], []],
  ])('%s', async (_, calls, expected) => {
    const work = session(calls)
    expect(extractSessionFacts(work.history).todos).toEqual(expected)
    const { carried } = await collectSources([todosSource()], createCarryContext(work.builder))
    const lines = expected.map(({ text, status }) => `[${status}] ${text}`).join('\n')
    expect(carried.map(({ attachment }) => attachment.content)).toEqual(lines === '' ? [] : [lines])
  })

  it('leaves out calls that failed or have no result yet', () => {
    const work = session([listed])
    const input = { todos: [{ content: 'new', status: 'pending' }] }
    work.calls('TodoWrite', input, 'no', true)
    work.builder.assistant('m', [{ type: 'tool_use', id: 'open', name: 'TodoWrite', input }])
    expect(readTodoList(listToolRuns(work.history))).toMatchObject({ items: [todo('old')], isWhole: true })
  })

  it('says again what no single kept call shows', async () => {
    const work = session([
      ['TaskCreate', { subject: 'a' }, '#1'],
      ['TaskUpdate', { taskId: 1, status: 'doing' }],
    ])
    const { carried } = await collectSources(
      [todosSource()],
      createCarryContext(work.builder, [...work.builder.view.entries]),
    )
    expect(carried.map(({ attachment }) => attachment.content)).toEqual(['[doing] a'])
  })
})

it.each([
  ['pending', true, false],
  ['in_progress', true, true],
  ['doing', true, true],
  ['completed', false, false],
  ['complete', false, false],
  ['Done', false, false],
  ['cancelled', false, false],
])('an item that is %s: open %s, in progress %s', (status, open, inProgress) => {
  expect([isOpenTodo(todo('a', status)), isTodoInProgress(todo('a', status))]).toEqual([open, inProgress])
})
