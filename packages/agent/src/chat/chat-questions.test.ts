import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { AgentOptions } from '../agent/agent-options.ts'
import { queueQuestionsInOptions } from '../agent/agent-permissions.ts'
import { addLocalAllowRules } from '../agent/project-rules.ts'
import { readSettings } from '../agent/settings.ts'
import type { QuestionAnswer, QuestionContent } from '../screen/question.ts'
import type { ChatScreen } from '../screen/screen.ts'
import { createTheme } from '../screen/theme.ts'
import { createScreenQuestions } from './chat-questions.ts'

const theme = createTheme({ write() {}, warn() {}, env: {}, isTty: false, columns: 100 })

/** Asks one question at a time, as an agent does. */
function inTurn(questions: ReturnType<typeof createScreenQuestions>): typeof questions {
  return queueQuestionsInOptions(questions as unknown as AgentOptions) as typeof questions
}

/** Questions on a screen that answers only when the signal of the question is aborted. */
function createWorld() {
  const shown: string[] = []
  let interrupted = 0
  const ask = ({ title }: { readonly title: string }, signal?: AbortSignal): Promise<QuestionAnswer> => {
    shown.push(title)
    return new Promise((resolve) => signal?.addEventListener('abort', () => resolve(null)))
  }
  const questions = createScreenQuestions({
    screen: { ask } as unknown as ChatScreen,
    theme,
    start: { folder: '/project', home: '/home' },
    allowed: [],
    show() {},
    interrupt() {
      interrupted += 1
    },
  })
  const { askPermission } = inTurn(questions)
  const askFor = (command: string, signal: AbortSignal) =>
    askPermission({ tool: 'Bash', input: { command }, reason: '', suggestions: [], signal })
  return { shown, askFor, countInterrupts: () => interrupted }
}

it('a question whose agent was stopped refuses the call and does not interrupt the turn of another', async () => {
  const { shown, askFor, countInterrupts } = createWorld()
  const [first, second] = [new AbortController(), new AbortController()]
  const answers = [askFor('one', first.signal), askFor('two', second.signal)]
  await expect.poll(() => shown).toHaveLength(1)
  second.abort()
  first.abort()
  expect(await Promise.all(answers)).toEqual([{ isAllowed: false }, { isAllowed: false }])
  expect([shown.length, countInterrupts()]).toEqual([1, 0])
})

it('one answer for the session is enough for all calls that wait for the same rule', async () => {
  const shown: string[] = []
  const ask = async ({ title }: QuestionContent): Promise<QuestionAnswer> => {
    shown.push(title)
    return { chosen: [1], text: '' }
  }
  const questions = createScreenQuestions({
    ...{ screen: { ask } as unknown as ChatScreen, theme, allowed: [], show() {}, interrupt() {} },
    start: { folder: '/project', home: '/home' },
  })
  const { askPermission } = inTurn(questions)
  const request = { tool: 'Bash', input: { command: 'npm test' }, reason: '', signal: undefined }
  const suggestions = ['Bash(npm test:*)']
  const answers = await Promise.all([1, 2, 3].map(() => askPermission({ ...request, suggestions })))
  expect(answers.every(({ isAllowed }) => isAllowed)).toBe(true)
  expect(shown).toHaveLength(1)
})

/** Returns the question for a call as the user sees it, at this width, and the labels of its choices. */
async function lookAt(
  tool: string,
  input: object,
  { suggestions = [] as readonly string[], width = 60, chosen = 1 } = {},
) {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-question-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  writeFileSync(join(folder, 'a.txt'), 'title set\nlast\n')
  const asked: QuestionContent[] = []
  const allowed: string[] = []
  const ask = async (content: QuestionContent): Promise<QuestionAnswer> => {
    asked.push(content)
    return { chosen: [chosen], text: '' }
  }
  const questions = createScreenQuestions({
    ...{ screen: { ask } as unknown as ChatScreen, theme, allowed, show() {} },
    start: { folder, home: join(folder, 'home') },
    interrupt() {},
  })
  await questions.askPermission({
    ...{ tool, input, suggestions, signal: undefined },
    reason: tool === 'Bash' ? 'It runs a command.' : 'It changes a file.',
  })
  const [content] = asked
  const labels = content?.choices.map(({ label }) => label) ?? []
  return { folder, title: content?.title ?? '', body: content?.body(width) ?? [], labels, allowed }
}

const WARNING = '  Control characters and invisible ones are shown as codes: \\u{…}.'

describe('the question for a permission hides nothing', () => {
  it.each([
    [
      'a title for the terminal',
      'echo ok \u001b]0;touch HIDDEN;\u0007',
      '  echo ok \\u{1b}]0;touch HIDDEN;\\u{7}',
    ],
    ['a colour', 'echo ok \u001b[0;touch x', '  echo ok \\u{1b}[0;touch x'],
    ['a carriage return', 'rm -r x\recho ok', '  rm -r x\\u{d}echo ok'],
    ['another direction', 'echo \u202eko', '  echo \\u{202e}ko'],
    ['characters without width', 'r\u200bm \u{e0041}x', '  r\\u{200b}m \\u{e0041}x'],
  ])('in a command with %s', async (_, command, line) => {
    expect(await lookAt('Bash', { command }, { width: 100 })).toMatchObject({
      title: 'Run this command?',
      body: [line, WARNING],
    })
  })

  it('in a long command, which is wrapped with all its spaces', async () => {
    const command = `echo ${'word '.repeat(60)}${' '.repeat(30)}; touch HIDDEN`
    const { body } = await lookAt('Bash', { command })
    expect(body.map((line) => line.slice(2)).join('')).toBe(command)
    expect(Math.max(...body.map((line) => line.length))).toBeLessThanOrEqual(60)
    const far = await lookAt('Bash', { command: `echo ok${' '.repeat(5_000)}; touch HIDDEN` })
    expect(far.body).toEqual(['  echo ok [5000 spaces] ; touch HIDDEN'])
  })

  it('in a change, with the numbers of its lines', async () => {
    const edit = { file_path: 'a.txt', old_string: 'title set', new_string: 'title \u001b]0;x\u0007set' }
    expect(await lookAt('Edit', edit, { width: 100 })).toMatchObject({
      title: 'Change a.txt?',
      body: ['  1 - title set', '  1 + title \\u{1b}]0;x\\u{7}set', '  2   last', WARNING],
    })
    const content = `x = 1${' '.repeat(30)}${'y'.repeat(40)}; evil()`
    const { title, body } = await lookAt('Write', { file_path: 'new.txt', content })
    expect([title, body.map((line) => line.slice(6)).join('')]).toEqual(['Create new.txt?', content])
  })

  it('in a write that changes nothing, or line ends only', async () => {
    const write = async (content: string) => (await lookAt('Write', { file_path: 'a.txt', content })).body
    expect(await write('title set\nlast\n')).toEqual(['  unchanged'])
    expect(await write('title set\nlast')).toEqual(['  only line ends change'])
  })

  it('in fields of other tools, whose lines cannot pass for another field', async () => {
    const { title, body } = await lookAt('mcp__files__move', { from: 'a\nto: b', to: '/etc\u200b' })
    expect([title, body[0], body[1], body[2]]).toEqual([
      'Call move of the MCP server files?',
      '  from: a',
      '      to: b',
      '  to: /etc\\u{200b}',
    ])
  })
})

it('what is allowed for the session is told in rules, or as exactly this command', async () => {
  const suggestions = ['Bash(git diff:*)', 'Bash(ls:*)']
  const chain = await lookAt('Bash', { command: 'git diff && ls' }, { suggestions })
  expect([chain.labels[1], chain.allowed]).toEqual([
    'Yes, and do not ask again in this session for Bash(git diff:*), Bash(ls:*)',
    suggestions,
  ])
  const loop = await lookAt('Bash', { command: 'a > b' }, { suggestions: ['Bash(a > b)'] })
  expect(loop.labels[1]).toBe('Yes, and do not ask again in this session for exactly this command')
  expect((await lookAt('Bash', { command: 'rm *' })).labels).toHaveLength(2)
})

it('a rule for later sessions is in the local settings of the folder, and trusted without the folder', async () => {
  const suggestions = ['Bash(ls:*)']
  const { folder, allowed, labels } = await lookAt('Bash', { command: 'ls' }, { suggestions, chosen: 2 })
  expect([labels[2], allowed]).toEqual([
    'Yes, and do not ask again in this folder, also in later sessions',
    suggestions,
  ])
  const more = { folder, home: join(folder, 'home') }
  await addLocalAllowRules(more, ['Edit', 'Bash(ls:*)'])
  const env = { HOME: folder, TIDEMARK_HOME: more.home }
  expect(await readSettings(folder, env)).toMatchObject({
    permissions: { allow: ['Bash(ls:*)', 'Edit'] },
    isTrusted: false,
    notices: [],
  })
  // Another rule in the same file, about which the user was not asked, is not trusted.
  writeFileSync(
    join(folder, '.tidemark', 'settings.local.json'),
    JSON.stringify({ model: 'm', permissions: { allow: ['Bash', 'Edit'], deny: ['Read(x)'] } }),
  )
  expect((await readSettings(folder, env)).permissions).toEqual({
    allow: ['Edit'],
    ask: [],
    deny: ['Read(x)'],
  })
  await addLocalAllowRules(more, ['Read(/etc/hosts)'])
  const stored = JSON.parse(readFileSync(join(folder, '.tidemark', 'settings.local.json'), 'utf8'))
  expect(stored).toEqual({
    model: 'm',
    permissions: { allow: ['Bash', 'Edit', 'Read(/etc/hosts)'], deny: ['Read(x)'] },
  })
})
