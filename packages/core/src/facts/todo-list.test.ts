import { SessionBuilder } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { createCarryContext } from '../../test/carry/carried-session.ts'
import { CodingSession } from '../../test/summarize/coding-session.ts'
import { createClearableCheck } from '../clearing/tool-result-index.ts'
import { createPolicy } from '../policy/create-policy.ts'
import { planSource, todosSource } from '../sources/builtin-sources.ts'
import { collectSourceAttachments } from '../sources/collect-sources.ts'
import { extractSessionFacts } from './session-facts.ts'
import { isOpenTodo, isTodoInProgress, readTodoList, type TodoItem } from './todo-list.ts'
import { listToolRuns } from './tool-runs.ts'

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
    [
      'items that say whether they are done',
      [
        [
          'update_tasks',
          { items: [{ title: 'a', done: true }, { title: 'b', done: false }, { title: 'c' }] },
        ],
      ],
      [todo('a', 'completed'), todo('b'), todo('c')],
    ],
    [
      'the newest of lists under many names',
      [
        ['todo_write', { todos: [{ content: 'a', status: 'pending' }] }],
        ['todowrite', { todos: [{ id: '1', content: 'b', status: 'pending' }] }],
        ['mcp__planner__set_todos', { items: ['c', 'd'] }],
      ],
      [todo('c'), todo('d')],
    ],
    [
      'texts with boxes',
      [['update_todo_list', { todos: '[x] a\n- [-] b\n[ ] c' }]],
      [todo('a', 'completed'), todo('b', 'in_progress'), todo('c')],
    ],
    [
      'steps of a plan',
      [['update_plan', { steps: [{ step: 'a', state: 'done' }, 'b'] }]],
      [todo('a', 'done'), todo('b')],
    ],
    [
      'items that are merged into the list or added to it',
      [
        [
          'todo_write',
          {
            todos: [
              { id: 1, content: 'a', status: 'pending' },
              { id: 2, content: 'b', status: 'pending' },
            ],
          },
        ],
        ['todo_write', { merge: true, todos: [{ id: 2, status: 'completed' }] }],
        ['todo_write', { merge: true, todos: [{ id: 1, content: 'A', status: 'pending' }] }],
        ['add_todos', { items: ['c'] }],
        ['update_tasks', { tasks: [{ id: 1, status: 'doing' }] }],
      ],
      [todo('A', 'doing'), todo('b', 'completed'), todo('c')],
    ],
    [
      'items that share an id',
      [
        [
          'set_todos',
          {
            todos: [
              { id: 1, text: 'a' },
              { id: 1, text: 'b' },
            ],
          },
        ],
      ],
      [todo('a'), todo('b')],
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
        ['delete_todos', { items: ['x'] }],
        ['add_to_docs', { items: ['x'] }],
        ['run_task', { steps: ['x'] }],
        ['mcp__tracker__update_tasks', { items: ['x'] }],
      ],
      [todo('old')],
    ],
    ['nothing', [['Bash', { command: 'ls' }]], []],
  ])('%s', async (_, calls, expected) => {
    const work = session(calls)
    expect(extractSessionFacts(work.history).todos).toEqual(expected)
    const { carried } = await collectSourceAttachments([todosSource()], createCarryContext(work.builder))
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
    const { carried } = await collectSourceAttachments(
      [todosSource()],
      createCarryContext(work.builder, [...work.builder.view.entries]),
    )
    expect(carried.map(({ attachment }) => attachment.content)).toEqual(['[doing] a'])
  })
})

it.each<[string, object, string | null]>([
  ['ExitPlanMode', { plan: 'a' }, 'a'],
  ['write_plan', { text: 'a' }, 'a'],
  ['submitPlan', { markdown: 'a' }, 'a'],
  ['plan', { content: 'a' }, 'a'],
  ['ExitPlanMode', { plan: '- [ ] a' }, '- [ ] a'],
  ['write_plan', { file_path: '/plan.md', content: 'a' }, null],
  ['explain_plan', { text: 'SELECT 1' }, null],
  ['choose_subscription', { plan: 'pro' }, null],
  ['update_plan', { plan: [{ step: 'a', status: 'pending' }] }, null],
])(
  'the plan that %s submits with %j comes back after a compaction, and is in the summary',
  async (tool, input, plan) => {
    const work = session([[tool, input]])
    expect(extractSessionFacts(work.history).plan?.text ?? null).toBe(plan)
    if (plan !== null) expect(extractSessionFacts(work.history).todos).toEqual([])
    const { carried } = await collectSourceAttachments([planSource()], createCarryContext(work.builder))
    expect(carried.map(({ attachment }) => attachment.planContent)).toEqual(plan === null ? [] : [plan])
  },
)

it.each<[string, boolean]>([
  ...['set_todos', 'todo_write', 'update_tasks', 'write_plan', 'mcp__planner__set_todos'].map(
    (tool): [string, boolean] => [tool, false],
  ),
  ...['ask_user', 'mcp__ui__ask_user', 'AskUserQuestion'].map((tool): [string, boolean] => [tool, false]),
  ...['add_to_docs', 'run_task', 'explain_plan', 'autodoc'].map((tool): [string, boolean] => [tool, true]),
])('results of %s can be cleared: %j', (tool, expected) => {
  const isClearable = createClearableCheck(createPolicy({}).clear, { clearsUnlisted: true, readOnly: [tool] })
  expect(isClearable(tool)).toBe(expected)
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
