/** The screen of `tidemark chat`. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Script } from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'
import { findUserSettingsPath } from '../src/agent/settings.ts'
import { createChatWorld, playSteps } from './chat-world.ts'
import { EMPTY_INPUT } from './screen-world.ts'
import { createVirtualScreen } from './virtual-screen.ts'

const READY = '% left'

/** Answers slowly with numbered paragraphs, so that something can happen meanwhile. */
const slowAnswer: Script = () => ({
  blocks: [{ type: 'text', text: Array.from({ length: 80 }, (_, i) => `Paragraph ${i}.`).join('\n\n') }],
  delays: { pieceMs: 40 },
})

describe('the screen', () => {
  it('asks for a permission in place, with the change of the file, and does what the user answers', async () => {
    const edit = { file_path: 'a.txt', old_string: 'two', new_string: 'three' }
    const { see, send, answerQuestion, read, lastResults } = await createVirtualScreen(
      playSteps({ Read: { file_path: 'a.txt' } }, { Edit: edit }, 'Refused?', { Edit: edit }, 'Done.'),
      { prepare: (world) => world.write('a.txt', 'one\ntwo\n') },
    )
    await see(READY)
    await send('Change it.')
    const question = await answerQuestion('No. Tell the model why:', 'Up')
    expect(question).toMatch(/Change a\.txt\?\n {2}1 +one\n {2}2 - two\n {2}2 \+ three\n/)
    await send('not this one')
    await see('Refused?')
    expect(lastResults().at(-1)).toContain('The user said: not this one')
    expect(read('a.txt')).toBe('one\ntwo\n')
    await send('Now.')
    await answerQuestion('No. Tell the model why:', '1')
    await see('Done.')
    expect(read('a.txt')).toBe('one\nthree\n')
  })

  it('earlier prompts of the folder come back in a new session, except those that begin with a space', async () => {
    const { see, send, type, press, restart, env } = await createVirtualScreen(playSteps('Hello.', 'Again.'))
    await see(READY)
    await type('Two')
    press('C-j')
    await send('lines.')
    await see('Hello.')
    await send(' My secret.')
    await see('Again.')
    await send('/exit')
    await see('EXIT 0')
    restart()
    await see(READY)
    press('Up')
    await see(/─\n❯ \/exit\n─/)
    press('Up')
    await see(/─\n❯ Two\n {2}lines\.\n─/)
    press('C-c')
    await see(EMPTY_INPUT)
    await send('/exit')
    await see('EXIT 0')
    const settings = findUserSettingsPath(env)
    mkdirSync(dirname(settings), { recursive: true })
    writeFileSync(settings, JSON.stringify({ promptHistory: false }))
    restart()
    await see(READY)
    press('Up')
    await type('Nothing.')
    await see(/─\n❯ Nothing\.\n─/)
  })

  it('escape on a question interrupts the turn, and nothing else is shown of it', async () => {
    const { see, send, answerQuestion } = await createVirtualScreen(
      playSteps({ Bash: { command: 'touch a' } }, 'Done.'),
    )
    await see(READY)
    await send('Touch it.')
    await answerQuestion('touch a', 'Escape')
    const screen = await see('Interrupted. Type what to do instead.')
    expect(screen).not.toContain('hook')
    await see(EMPTY_INPUT)
  })

  it('a question or a list that closes leaves no empty rows under the meter, and every line once', async () => {
    const text = (from: number): string =>
      Array.from({ length: 30 }, (_, line) => `Paragraph ${from + line}.`).join('\n\n')
    const write = { Write: { file_path: 'a.txt', content: 'one\n'.repeat(40) } }
    const { see, send, type, press, answerQuestion, lookBack } = await createVirtualScreen(
      playSteps(text(0), write, 'Refused.', text(30)),
    )
    const meterIsLast = /% left [^\n]*\n[^\n]*claude-[\w.-]+\n$/
    await see(READY)
    await send('Talk.')
    await see('Paragraph 29.')
    await see(meterIsLast)
    await type('/c')
    await see('/compact')
    press('C-c')
    await see(/^(?![\s\S]*\/compact)/)
    await see(meterIsLast)
    await send('Write it.')
    // The newest line of the conversation stays visible above the question.
    await answerQuestion(
      /◐ Write a\.txt\n[\s\S]*\nCreate a\.txt\?\n[\s\S]*No\. Tell the model why:/,
      'Up',
      'Enter',
    )
    await see('Refused.')
    await see(meterIsLast)
    await send('/context')
    await see('By class')
    press('Escape')
    await see(/Refused\.[\s\S]*% left [^\n]*\n[^\n]*claude-[\w.-]+\n$/)
    await send('More.')
    await see('Paragraph 59.')
    await see(meterIsLast)
    const numbers = [...lookBack().matchAll(/^Paragraph (\d+)\.$/gm)].map(([, number]) => Number(number))
    expect(numbers).toEqual(Array.from({ length: 60 }, (_, index) => index))
  })

  it('shows subagents as lines, and their names with the permissions they ask for', async () => {
    const main = playSteps(
      {
        Task: {
          description: 'Write it',
          prompt: 'PART',
          subagent_type: 'general-purpose',
          run_in_background: true,
        },
      },
      'It works on.',
    )
    const part = playSteps({ Write: { file_path: 'b.txt', content: 'two\n' } }, 'It is **written**.')
    const { see, send, answerQuestion, read } = await createVirtualScreen(
      (request, context) =>
        (JSON.stringify(request.system).includes('You are the agent') ? part : main)(request, context),
      { columns: 120, rows: 40 },
    )
    await see(READY)
    await send('Let someone write it.')
    await see(/◇ The agent general-purpose agent-\S+ works in the background: Write it/)
    // The turn ends while the agent waits for the answer.
    await answerQuestion(
      /The agent general-purpose asks: Create b\.txt\?[\s\S]*No\. Tell the model why:/,
      '1',
    )
    await see(
      /◆ The agent general-purpose agent-\S+ has finished, 2 calls, \$\S+\. The model gets its result with the next/,
    )
    expect(read('b.txt')).toBe('two\n')
    await send('/agents')
    await see(/general-purpose agent-\S+ {2}finished\n +Write it, 2 calls/)
  })

  it('the question of a subagent closes when the model stops it, and the turn goes on', async () => {
    const start = { description: 'Write it', prompt: 'PART', subagent_type: 'general-purpose' }
    const part = playSteps({ Write: { file_path: 'b.txt', content: 'two\n' } })
    const call = (name: string, input: object) =>
      ({ type: 'tool_use', id: `call-${name}`, name, input }) as const
    const asked = Promise.withResolvers<void>()
    const script: Script = async (request, context) => {
      if (JSON.stringify(request.system).includes('You are the agent')) return part(request, context)
      const id = /agent-[\w-]+/.exec(JSON.stringify(request.messages))?.[0]
      const { length } = request.messages
      if (id === undefined) return { blocks: [call('Task', { ...start, run_in_background: true })] }
      if (length < 5) {
        await asked.promise
        return { blocks: [call('TaskStop', { agent_id: id })] }
      }
      return { blocks: [{ type: 'text', text: 'I have stopped it.' }] }
    }
    const { see, send, read } = await createVirtualScreen(script)
    await see(READY)
    await send('Let someone write it.')
    await see(/The agent general-purpose asks: Create b\.txt\?[\s\S]*No\. Tell the model why:/)
    asked.resolve()
    const screen = await see('I have stopped it.')
    expect(screen).not.toContain('Tell the model why:')
    expect(screen).not.toContain('Interrupted')
    await see(EMPTY_INPUT)
    expect(read('b.txt')).toBeNull()
  })

  it('asks the questions of the model: one choice, several, or other words', async () => {
    const questions = [
      { question: 'Which store?', options: [{ label: 'Redis' }, { label: 'Files' }] },
      { question: 'Which parts?', options: [{ label: 'Keys' }, { label: 'Values' }], multiSelect: true },
      { question: 'Why?', options: [] },
    ]
    const { see, send, press, type, answerQuestion, lastResults } = await createVirtualScreen(
      playSteps({ AskUser: { questions } }, 'Thank you.'),
    )
    await see(READY)
    await send('Ask me.')
    await answerQuestion('Which store?', '2')
    await answerQuestion('[ ] Keys', 'Space', 'Down', 'Space', 'Enter')
    await answerQuestion('Why?')
    await type('It is simpler.')
    press('Enter')
    await see('Thank you.')
    expect(lastResults().join()).toMatch(/Files[\s\S]*Keys, Values[\s\S]*It is simpler\./)
  })

  it('a plan is shown as a whole, and can be sent back with a remark', async () => {
    const plan = '# Plan\n\n1. Read\n2. Change'
    const { see, send, answerQuestion, lastResults } = await createVirtualScreen(
      playSteps({ ExitPlanMode: { plan } }, 'I change it.', { ExitPlanMode: { plan } }, 'I begin.'),
      { choices: { permissionMode: 'plan' } },
    )
    await see('plan mode')
    await send('Plan it.')
    await answerQuestion(/Carry out this plan\?[\s\S]*2\. Change[\s\S]*1\. Yes/, 'Down')
    await send('test first')
    await see('I change it.')
    expect(lastResults().at(-1)).toContain('test first')
    await send('Again.')
    await answerQuestion('Carry out this plan?', '1')
    await see('I begin.')
    // The meter follows within a second.
    await see(/^(?![\s\S]*plan mode ·)/)
  })

  it('queues what is typed while a turn runs; escape interrupts it and gives the queue back', async () => {
    const { see, send, press } = await createVirtualScreen(slowAnswer)
    await see(READY)
    await send('First.')
    await see('Paragraph 3.')
    await send('Second.')
    await see('queued: Second.')
    press('Escape')
    const screen = await see('Interrupted. Type what to do instead.')
    expect(screen).not.toContain('queued:')
    await see(/─\n❯ Second\.\n─/)
  })

  it('survives a terminal that is too small for anything', async () => {
    const write = { Write: { file_path: 'a.txt', content: 'one\n'.repeat(50) } }
    const { see, seeStill, send, press, resize } = await createVirtualScreen(
      playSteps(write, '| a | b |\n| - | - |', 'End.'),
    )
    await see(READY)
    await send('Write it.')
    await see('No. Tell the model why:')
    for (const [columns, rows] of [
      [12, 4],
      [4, 3],
      [80, 24],
    ] as const) {
      resize(columns, rows)
      await seeStill()
    }
    press('1')
    await see('│ a │ b │')
    for (const [columns, rows] of [
      [4, 3],
      [80, 24],
    ] as const) {
      resize(columns, rows)
      await seeStill()
    }
    await send('/help')
    await see('Commands')
    resize(6, 4)
    await seeStill()
    resize(80, 24)
    await seeStill()
    press('Escape')
    await see(READY)
    await send('Go on.')
    await see('End.')
  })

  it('is written without colours if NO_COLOR is set', async () => {
    const script = playSteps('```ts\nconst a = "b" // c\n```')
    const { see, send, lookAtColors } = await createVirtualScreen(script, { env: { NO_COLOR: '1' } })
    await see(READY)
    await send('Code.')
    await see('const a = "b" // c')
    const codes = lookAtColors()
      .split('\u001b[')
      .map((part) => /^[\d;]*m/.exec(part)?.[0] ?? '')
    expect(codes.filter((code) => /3[0-8]|4[0-8]|9[0-7]/.test(code))).toEqual([])
  })

  it('is drawn in ASCII if the locale is not UTF-8', async () => {
    const script = playSteps('| a | b |\n| - | - |\n| ü | 日 |')
    const { see, send, press } = await createVirtualScreen(script, { env: { LC_ALL: 'C' } })
    await see(READY)
    await send('Table.')
    const screen = await see(/> Table\.[\s\S]*\| \? \| \?\? \|/)
    expect(screen).toMatch(/-{80}\n[\s\S]*#\.+\^ \d+% left/)
    expect(screen.match(/\P{ASCII}/gu)).toBeNull()
    await send('/context')
    expect((await see('By class')).match(/\P{ASCII}/gu)).toBeNull()
    press('Escape')
    await see(READY)
  })

  it('text of tools and of the model cannot set the title, write the clipboard or move the cursor', async () => {
    const evil = '\u001b]0;pwned\u0007\u001b]52;c;cHduZWQ=\u0007\u001b[2J\u001b[HEvil'
    const command = `printf '\\033]0;pwned\\007\\033]52;c;cHduZWQ=\\007\\033[2J\\033[HEvil\\n'`
    const { see, send, readWritten } = await createVirtualScreen(
      playSteps({ Bash: { command } }, `${evil} end`),
      {
        choices: { permissionMode: 'allow-all' },
      },
    )
    await see(READY)
    await send('Do it.')
    const screen = await see('Evil end')
    expect(screen).toContain('❯ Do it.')
    const commands = ['\u001b]0;pwned', '\u001b]52;', '\u001b[HEvil']
    expect(commands.filter((each) => readWritten().includes(each))).toEqual([])
  })

  it('after a signal the session goes on where it was', async () => {
    const { see, send, signal, restart, lookBack } = await createVirtualScreen(slowAnswer)
    await see(READY)
    await send('Work on it.')
    await see('Paragraph 5.')
    signal('SIGTERM')
    await see('EXIT 143')
    restart({ continue: true })
    await see('Its last turn was interrupted: /retry continues it.')
    expect(lookBack()).toContain('❯ Work on it.')
    await send('/retry')
    await see('Paragraph 12.')
  })
})

it('the screen and its library are loaded only when it opens', () => {
  const root = join(import.meta.dirname, '../src')
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
    (file) => /(?<!\.test)\.ts$/.test(file) && !/^(screen|chat)\//.test(file),
  )
  const importing = files.filter((file) =>
    /^import (?!type )[^']* from '(@earendil-works|(\.\.?\/)+(screen|chat)\/)/m.test(
      readFileSync(join(root, file), 'utf8'),
    ),
  )
  expect(importing).toEqual([])
})

describe('without a terminal that can show a screen', () => {
  const dumb = { isTty: true, isInputTty: true, env: { TERM: 'dumb' } }
  it.each([
    ['piped', {}, 'needs a terminal for input and output'],
    ['TERM=dumb', dumb, 'cannot be shown in this terminal (TERM=dumb)'],
  ])('%s: says so, and how to go on', async (_, terminal, why) => {
    const { pipe } = await createChatWorld(playSteps('Hello.'))
    const { code, err } = await pipe('', {}, terminal)
    expect([code, err]).toEqual([2, expect.stringContaining(why)])
    expect(err).toContain('-p')
  })
})
