/** The screen of `tidemark chat` in a real terminal. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Script } from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'
import { createChatWorld, playSteps } from './chat-world.ts'
import { createScreenWorld, hasTmux } from './screen-world.ts'

const READY = '% left'

/** Answers slowly with numbered paragraphs, so that something can happen meanwhile. */
const slowAnswer: Script = () => ({
  blocks: [{ type: 'text', text: Array.from({ length: 80 }, (_, i) => `Paragraph ${i}.`).join('\n\n') }],
  delays: { pieceMs: 40 },
})

describe.skipIf(!hasTmux)('the screen', () => {
  it('streams an answer, shows the meter, and gives the terminal back after Ctrl-C twice', async () => {
    const { see, send, press } = await createScreenWorld(playSteps('# Hello\n\nA **bold** answer.'))
    await see(READY)
    await send('Hi.')
    expect(await see('A bold answer.')).toContain('❯ Hi.')
    await see(/cache warm \d/)
    press('C-c')
    await see('Press Ctrl-C again to exit.')
    press('C-c')
    const end = await see(/EXIT 0\n icanon/)
    expect(end).toMatch(/To go on: tidemark chat --resume chat-\S+\nEXIT 0/)
  })

  it('asks for a permission in place, with the change of the file, and does what the user answers', async () => {
    const edit = { file_path: 'a.txt', old_string: 'two', new_string: 'three' }
    const { see, send, press, read, lastResults } = await createScreenWorld(
      playSteps({ Read: { file_path: 'a.txt' } }, { Edit: edit }, 'Refused?', { Edit: edit }, 'Done.'),
      { prepare: (world) => world.write('a.txt', 'one\ntwo\n') },
    )
    await see(READY)
    await send('Change it.')
    const question = await see('No. Tell the model why:')
    expect(question).toMatch(/Edit a\.txt\n +one\n {2}- two\n {2}\+ three\n/)
    await wait(400)
    press('Up')
    await send('not this one')
    await see('Refused?')
    expect(lastResults().at(-1)).toContain('The user said: not this one')
    expect(read('a.txt')).toBe('one\ntwo\n')
    await send('Now.')
    await see('No. Tell the model why:')
    await wait(400)
    press('1')
    await see('Done.')
    expect(read('a.txt')).toBe('one\nthree\n')
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
    const { see, send, press, read } = await createScreenWorld(
      (request, context) =>
        (JSON.stringify(request.system).includes('You are the agent') ? part : main)(request, context),
      { columns: 120, rows: 40 },
    )
    await see(READY)
    await send('Let someone write it.')
    await see(/◇ The agent general-purpose agent-\S+ works in the background: Write it/)
    // The turn ends while the agent waits for the answer.
    await see(/The agent general-purpose: Write b\.txt[\s\S]*No\. Tell the model why:/)
    await wait(400)
    press('1')
    await see(
      /◆ The agent general-purpose agent-\S+ has finished, 2 calls, \$\S+\. The model gets its result with the next/,
    )
    expect(read('b.txt')).toBe('two\n')
    await send('/agents')
    await see(/general-purpose agent-\S+ {2}finished\n +Write it, 2 calls/)
  })

  it('asks the questions of the model: one choice, several, or other words', async () => {
    const questions = [
      { question: 'Which store?', options: [{ label: 'Redis' }, { label: 'Files' }] },
      { question: 'Which parts?', options: [{ label: 'Keys' }, { label: 'Values' }], multiSelect: true },
      { question: 'Why?', options: [] },
    ]
    const { see, send, press, type, lastResults } = await createScreenWorld(
      playSteps({ AskUser: { questions } }, 'Thank you.'),
    )
    await see(READY)
    await send('Ask me.')
    await see('Which store?')
    await wait(400)
    press('2')
    await see('[ ] Keys')
    await wait(400)
    press('Space', 'Down', 'Space', 'Enter')
    await see('Why?')
    await wait(400)
    await type('It is simpler.')
    press('Enter')
    await see('Thank you.')
    expect(lastResults().join()).toMatch(/Files[\s\S]*Keys, Values[\s\S]*It is simpler\./)
  })

  it('a plan is shown as a whole, and can be sent back with a remark', async () => {
    const plan = '# Plan\n\n1. Read\n2. Change'
    const { see, send, press, lastResults } = await createScreenWorld(
      playSteps({ ExitPlanMode: { plan } }, 'I change it.', { ExitPlanMode: { plan } }, 'I begin.'),
      { args: ['--permission-mode', 'plan'] },
    )
    await see('plan mode')
    await send('Plan it.')
    await see(/2\. Change[\s\S]*Approve the plan/)
    await wait(400)
    press('Down')
    await send('test first')
    await see('I change it.')
    expect(lastResults().at(-1)).toContain('test first')
    await send('Again.')
    await see('Approve the plan')
    await wait(400)
    press('1')
    await see('I begin.')
    // The meter follows within a second.
    await see(/^(?![\s\S]*plan mode ·)/)
  })

  it('queues what is typed while a turn runs; escape interrupts it and gives the queue back', async () => {
    const { see, send, press } = await createScreenWorld(slowAnswer)
    await see(READY)
    await send('First.')
    await see('Paragraph 3.')
    await send('Second.')
    await see('queued: Second.')
    press('Escape')
    const screen = await see('Interrupted. Type what to do instead.')
    expect(screen).not.toContain('queued:')
    await see(/─\n Second\.\n─/)
  })

  it('keeps every line of a long answer once, also if the terminal is resized while it streams', async () => {
    const { see, send, resize, lookBack } = await createScreenWorld(slowAnswer)
    await see(READY)
    await send('Go.')
    for (const [columns, rows, until] of [
      [120, 40, 10],
      [200, 60, 25],
      [60, 20, 40],
      [100, 30, 55],
    ] as const) {
      await see(`Paragraph ${until}.`)
      resize(columns, rows)
    }
    await see('Paragraph 79.')
    await wait(500)
    const numbers = [...lookBack().matchAll(/^Paragraph (\d+)\.$/gm)].map(([, number]) => Number(number))
    expect(numbers).toEqual(Array.from({ length: 80 }, (_, index) => index))
  })

  it('survives a terminal that is too small for anything', async () => {
    const write = { Write: { file_path: 'a.txt', content: 'one\n'.repeat(50) } }
    const { see, send, press, resize } = await createScreenWorld(
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
      await wait(300)
    }
    press('1')
    await see('│ a │ b │')
    for (const [columns, rows] of [
      [4, 3],
      [80, 24],
    ] as const) {
      resize(columns, rows)
      await wait(300)
    }
    await send('/help')
    await see('Commands')
    resize(6, 4)
    await wait(300)
    resize(80, 24)
    await wait(300)
    press('Escape')
    await see(READY)
    await send('Go on.')
    await see('End.')
  })

  it('is written without colours if NO_COLOR is set', async () => {
    const script = playSteps('```ts\nconst a = "b" // c\n```')
    const { see, send, lookAtColors } = await createScreenWorld(script, { env: { NO_COLOR: '1' } })
    await see(READY)
    await send('Code.')
    await see('const a = "b" // c')
    const codes = lookAtColors()
      .split('\u001b[')
      .map((part) => /^[\d;]*m/.exec(part)?.[0] ?? '')
    expect(codes.filter((code) => /3[0-8]|4[0-8]|9[0-7]/.test(code))).toEqual([])
  })

  it('text of tools and of the model cannot set the title, write the clipboard or move the cursor', async () => {
    const evil = '\u001b]0;pwned\u0007\u001b]52;c;cHduZWQ=\u0007\u001b[2J\u001b[HEvil'
    const command = `printf '\\033]0;pwned\\007\\033]52;c;cHduZWQ=\\007\\033[2J\\033[HEvil\\n'`
    const { see, send, tmux } = await createScreenWorld(playSteps({ Bash: { command } }, `${evil} end`), {
      args: ['--permission-mode', 'allow-all'],
    })
    tmux('set-option', '-g', 'set-clipboard', 'on')
    await see(READY)
    await send('Do it.')
    const screen = await see('Evil end')
    expect(screen).toContain('❯ Do it.')
    expect(tmux('display-message', '-t', 's', '-p', '#{pane_title}')).not.toContain('pwned')
    expect(tmux('list-buffers')).toBe('')
  })

  it('after a kill the terminal works, and the session goes on where it was', async () => {
    const { see, send, findPid, restart } = await createScreenWorld(slowAnswer)
    await see(READY)
    await send('Work on it.')
    await see('Paragraph 5.')
    process.kill(findPid(), 'SIGTERM')
    await see(/EXIT 143\n icanon/)
    restart('--continue')
    const screen = await see('Its last turn was interrupted: /retry continues it.')
    expect(screen).toContain('❯ Work on it.')
    await send('/retry')
    await see('Paragraph 12.')
  })
})

it('the screen and its library are loaded only when it opens', () => {
  const root = join(import.meta.dirname, '../src')
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.ts') && !/^(screen|chat)\//.test(file),
  )
  const importing = files.filter((file) =>
    /from '(@earendil-works|(\.\.?\/)+(screen|chat)\/)/.test(readFileSync(join(root, file), 'utf8')),
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
