/** Every hook event that a chat reaches, from a real settings file, with commands that misbehave in each way. */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { sampleCases } from '@tidemark/core/testing'
import { withSummaries } from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'
import { createChatWorld, type Printed, playSteps } from './chat-world.ts'

/** Subagents have events of their own, which a chat without them does not reach. */
const EVENTS = [
  'UserPromptSubmit',
  'PreToolUse',
  'PermissionRequest',
  'PostToolUse',
  'Stop',
  'PreCompact',
  'PostCompact',
  'SessionStart',
  'SessionEnd',
  'InstructionsLoaded',
] as const
type EventName = (typeof EVENTS)[number]

interface HookedRun extends Omit<Printed, 'lines'> {
  /** The events whose commands have run. */
  readonly ran: readonly string[]
  /** All requests of the conversation, as JSON. */
  readonly sent: readonly string[]
}

/** A chat with a memory file, a tool call that needs a permission, and calls that fill the window until it is compacted. */
async function runHooked(
  events: readonly EventName[],
  hook: (event: EventName) => { readonly command: string; readonly timeout?: number },
): Promise<HookedRun> {
  const sent: string[] = []
  const read = (offset: number) => ({ Read: { file_path: 'long.txt', offset } })
  const play = playSteps(
    { Bash: { command: 'echo x' } },
    { Read: { file_path: 'CLAUDE.md' } },
    read(1),
    read(2),
    'Done.',
  )
  const world = await createChatWorld(
    withSummaries((request, context) => {
      sent.push(JSON.stringify(request.messages))
      // Counted by requests, since a compaction shortens the conversation.
      return play(request, { ...context, turn: sent.length - 1 })
    }),
  )
  const home = dirname(world.folder)
  const mark = (event: string): string => `echo ${event} >>"$HOME/ran"`
  const hooks = Object.fromEntries(
    events.map((event) => {
      const { command, ...more } = hook(event)
      return [event, [{ hooks: [{ type: 'command', command: `${mark(event)}; ${command}`, ...more }] }]]
    }),
  )
  const settings = join(home, '.config/tidemark/settings.json')
  mkdirSync(dirname(settings), { recursive: true })
  writeFileSync(settings, JSON.stringify({ hooks, policy: { notes: { enabled: false } } }))
  world.write('CLAUDE.md', 'Amounts are in cents.')
  world.write('long.txt', 'a line of words that fill the window of the model\n'.repeat(900))
  const { code, out, err } = await world.run('chat', '-p', 'Go.', '--window', '30000')
  const ran = existsSync(join(home, 'ran')) ? readFileSync(join(home, 'ran'), 'utf8').trim().split('\n') : []
  return { code, out, err, ran: [...new Set(ran)].sort(), sent }
}

const ALL = [...EVENTS].sort()

describe('commands at all events of a chat', () => {
  it.each(
    sampleCases(
      [
        ['fail', { command: 'echo oh >&2; exit 1' }, /failed: The command exited with 1: oh/],
        ['hang', { command: 'sleep 60', timeout: 0.3 }, /took longer than 0\.3 seconds/],
        ['answer JSON', { command: `echo '{"systemMessage":"told"}'` }, /told/],
        ['answer text', { command: 'echo plain' }, null],
        ['print 10 MB', { command: 'head -c 10000000 /dev/zero | tr "\\0" x' }, null],
      ] as const,
      3,
    ),
  )('that %s let it end as without them', async (_, command, told) => {
    const { code, out, err, ran, sent } = await runHooked(EVENTS, () => command)
    expect([code, out, ran]).toEqual([0, 'Done.\n', ALL])
    expect(err).toContain('Compacted: ')
    if (told !== null) expect(err).toMatch(told)
    expect(Math.max(...sent.map(({ length }) => length))).toBeLessThan(120_000)
  })
})

describe('a command that blocks', () => {
  const blocked = (event: EventName) =>
    runHooked([event], () => ({ command: 'echo Not on Fridays. >&2; exit 2' }))

  it('at UserPromptSubmit ends the turn before anything is sent', async () => {
    const { code, err, sent } = await blocked('UserPromptSubmit')
    expect([code, err, sent.length]).toEqual([1, expect.stringContaining('Not on Fridays.'), 0])
  })

  it.each(sampleCases(['PreToolUse', 'PermissionRequest', 'PostToolUse'] as const, 1))(
    'at %s is told to the model',
    async (event) => {
      const { code, out, sent } = await blocked(event)
      expect([code, out]).toEqual([0, 'Done.\n'])
      expect(sent[2]).toContain('Not on Fridays.')
    },
  )

  it('at Stop makes the model go on, and not for ever', async () => {
    const { code, out, sent } = await blocked('Stop')
    expect([code, out]).toEqual([0, 'Done.\n'])
    expect(sent.length).toBeGreaterThan(20)
    expect(sent.length).toBeLessThan(60)
  })

  it('at PreCompact cannot stop a compaction without which the conversation does not fit', async () => {
    const { code, out, err } = await blocked('PreCompact')
    expect([code, out]).toEqual([0, 'Done.\n'])
    expect(err).toContain(
      'does not want a compaction, but the conversation would not fit without it: Not on Fridays.',
    )
    expect(err).toContain('Compacted: ')
  })

  it.each(sampleCases(['PostCompact', 'SessionStart', 'SessionEnd', 'InstructionsLoaded'] as const, 2))(
    'at %s, where nothing can be blocked, has failed',
    async (event) => {
      const { code, out, err } = await blocked(event)
      expect([code, out]).toEqual([0, 'Done.\n'])
      expect(err).toContain('The command exited with 2: Not on Fridays.')
    },
  )
})
