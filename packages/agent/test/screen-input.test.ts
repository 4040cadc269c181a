/** What the user types on the screen: commands with a typo, shell commands, files, the queue. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Script } from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'
import { findUserSettingsPath } from '../src/agent/settings.ts'
import { createVirtualScreen } from './virtual-screen.ts'

/** Answers slowly to a prompt with "slow". */
const script: Script = ({ messages }) => {
  const last = JSON.stringify(messages.at(-1))
  return last.includes('slow')
    ? { blocks: [{ type: 'text', text: `BEGIN ${'word '.repeat(500)}` }], delays: { pieceMs: 40 } }
    : { blocks: [{ type: 'text', text: 'Answered.' }] }
}

function readLog(home: string): string {
  const folder = join(home, 'sessions')
  const [name = ''] = readdirSync(folder).filter((each) => each.endsWith('.jsonl'))
  return readFileSync(join(folder, name), 'utf8')
}

describe('the input', () => {
  it('keeps a command with a typo, runs a shell command, and attaches a file', async () => {
    const world = await createVirtualScreen(script, {
      columns: 100,
      rows: 40,
      prepare: ({ write }) => write('src/a.ts', 'one\ntwo\n'),
    })
    const { see, send, press, type, home } = world
    await see(/% left/)
    await send('/cots')
    await see(/There is no command \/cots; nothing was sent\. Did you mean \/cost or[\s\S]*─\n❯ \/cots\s*\n─/)
    press('C-c')
    await send('?')
    await see('list commands and keys')
    press('Escape')
    await see(/% left/)
    await send('!echo shell-$((40+2)); exit 3')
    await see(/! echo shell-\S+[\s\S]*shell-42\n +\[exit code 3\]/)
    await send('What of @src/a.ts?')
    await see(
      /❯ What of @src\/a\.ts\?\n· attached src\/a\.ts, 2 lines\n· with the output of echo[\s\S]*Answered\./,
    )
    const log = readLog(home)
    expect(log).not.toContain('cots')
    expect(log).toContain('<bash-stdout>shell-42')
    // Messages that came back from the queue together are no shell command.
    type('!echo one')
    press('C-j')
    await send('echo two')
    await see(/❯ !echo one\n {2}echo two\n[\s\S]*Answered\./)
    await send('/usr/nothing is full')
    await see(/❯ \/usr\/nothing is full\n[\s\S]*Answered\./)
  })

  it('gives a queued message back with Up, and keeps it when the terminal is closed in the middle of an answer', async () => {
    const { see, send, press, type, restart, signal, home } = await createVirtualScreen(script, {
      columns: 100,
      rows: 40,
    })
    await see(/% left/)
    await send('slow')
    await see('BEGIN')
    await type('first')
    press('C-j')
    await type('two')
    press('C-j')
    await type('three')
    press('Enter')
    await send('second')
    await see(/queued: first \(\+2 lines\)\n +queued: second/)
    press('Up')
    const taken = await see(/─\n❯ second\s*\n─/)
    expect(taken).not.toContain('queued: second')
    press('Enter')
    await see(/queued: second/)
    signal('SIGHUP')
    await see(/EXIT 129/)
    expect(readLog(home)).toContain('BEGIN word')
    restart({ continue: true })
    await see(
      /BEGIN word[\s\S]*2 messages were waiting[\s\S]*─\n❯ first\s*\n {2}two\s*\n {2}three\s*\n\s*\n {2}second\s*\n─/,
    )
    press('Enter')
    await see(/❯ first[\s\S]*second[\s\S]*Answered\./)
  })

  it('has a prompt again that was interrupted before it was in the log', async () => {
    const { see, send, press, home } = await createVirtualScreen(script, {
      prepare({ env }) {
        const path = findUserSettingsPath(env)
        mkdirSync(dirname(path), { recursive: true })
        const hooks = { UserPromptSubmit: [{ hooks: [{ type: 'command', command: 'sleep 30' }] }] }
        writeFileSync(path, JSON.stringify({ hooks }))
      },
    })
    await see(/% left/)
    await send('Keep me.')
    await see('esc interrupts')
    press('Escape')
    await see(/Interrupted\.[\s\S]*─\n❯ Keep me\.\s*\n─/)
    expect(readdirSync(join(home, 'sessions')).filter((name) => name.endsWith('.jsonl'))).toEqual([])
  })

  it('has a prompt again that the provider refused as too long, and the next one is answered', async () => {
    const { see, send, press, seeIdle, server } = await createVirtualScreen(script)
    await see(/% left/)
    const message = 'prompt is too long: 1200000 tokens > 1000000 maximum'
    server.simulator.queueFaults({ type: 'status', status: 400, errorType: 'invalid_request_error', message })
    await send('Keep me.')
    const screen = await see(/The input has it again\.[\s\S]*─\n❯ Keep me\.\s*\n─/)
    expect(screen).not.toContain('/retry')
    press('C-c')
    await seeIdle()
    await send('Something short.')
    await see('Answered.')
  })
})
