/** Every slash command of the screen, in a real terminal. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { createSummarizer, type Script } from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'
import { findUserSettings } from '../src/agent/settings.ts'
import { type ChatWorld, playSteps } from './chat-world.ts'
import { testServer } from './mcp-world.ts'
import { createScreenWorld, hasTmux, type ScreenWorld, type ScreenWorldOptions } from './screen-world.ts'

/** The meter, which a panel hides; /context has another text after "left". */
const READY = /% left \d/
const steps = playSteps(
  { Read: { file_path: 'a.txt' } },
  'The file says **one**.',
  'Second answer.',
  'Third answer.',
)
const summarize = createSummarizer()

/** Plays the steps; a request for a summary gets one. */
const script: Script = (request, context) => {
  const last = JSON.stringify(request.messages.at(-1))
  return /summary/i.test(last) && !last.includes('tool_result')
    ? summarize(request, context)
    : steps(request, context)
}

const prepare = (world: ChatWorld): void => {
  world.write('a.txt', `one\ntwo\n${'A line of the file that says little.\n'.repeat(800)}`)
  world.write('CLAUDE.md', 'Always be brief.\n')
  world.write('.claude/commands/review.md', '---\ndescription: reviews the code\n---\nReview $ARGUMENTS.\n')
}

/** Puts a script in the home folder that edits the first line of a file. */
const prepareEditor =
  (command: string) =>
  (world: ChatWorld): void => {
    prepare(world)
    writeFileSync(join(world.folder, '..', 'edit.sh'), `#!/bin/sh\n${command} "$1"\n`, { mode: 0o755 })
  }

function readLogs(home: string): string {
  const folder = join(home, 'sessions')
  const names = readdirSync(folder).filter((name) => name.endsWith('.jsonl'))
  return names.map((name) => readFileSync(join(folder, name), 'utf8')).join('')
}

/** As `script`, but a summary takes a second to begin. */
const slowSummary: Script = async (request, context) => {
  const reply = await script(request, context)
  const isSummary = JSON.stringify(request.messages.at(-1)).includes('summary')
  return isSummary ? { ...reply, delays: { startMs: 1_000 } } : reply
}

async function openWithTurns(
  options: ScreenWorldOptions & { readonly script?: Script } = {},
): Promise<ScreenWorld> {
  const world = await createScreenWorld(options.script ?? script, {
    columns: 120,
    rows: 40,
    prepare,
    ...options,
  })
  await world.see(READY)
  await world.send('Read a.txt, please.')
  await world.see('The file says one.')
  await world.send('And now?')
  await world.see('Second answer.')
  await world.see(/─\n\n─/)
  return world
}

describe.skipIf(!hasTmux)('slash commands', () => {
  it('that show something open a page, and escape closes it', async () => {
    const { send, see, press } = await openWithTurns()
    const pages: readonly (readonly [string, string | RegExp])[] = [
      ['/help', /\/compact \[instructions\][\s\S]*Ctrl-T/],
      [
        '/context',
        /of a window of[\s\S]*By class[\s\S]*system prompt[\s\S]*By tool\n +Read[\s\S]*By file\n +a\.txt[\s\S]*Largest messages/,
      ],
      ['/cost', /spent in 3 calls[\s\S]*Context over time/],
      ['/history "one two"', 'History: "one two"'],
      ['/memory', 'CLAUDE.md'],
      ['/hooks', 'No hooks are set.'],
      ['/mcp', 'No MCP servers are set.'],
      ['/agents', /explore {2}definition\n +Finds out how something works/],
      ['/skills', /\/review {2}command, project\n +reviews the code/],
      ['/open', 'Read a.txt'],
    ]
    for (const [command, shown] of pages) {
      await send(command)
      await see(shown)
      press('Escape')
      await see(READY)
    }
    await send('/export talk.md')
    await see('talk.md')
  })

  it('/mcp, /hooks and /agents show what the settings and the files have', async () => {
    const { see, send, press } = await createScreenWorld(playSteps('The file says one.'), {
      columns: 120,
      rows: 40,
      prepare(world) {
        const path = findUserSettings(world.env)
        mkdirSync(dirname(path), { recursive: true })
        const hook = { matcher: 'Bash', hooks: [{ type: 'command', command: 'true' }] }
        const hooks = { PreToolUse: [hook] }
        writeFileSync(path, JSON.stringify({ hooks, mcpServers: { test: testServer() } }))
        const agents = join(world.folder, '..', '.claude', 'agents')
        mkdirSync(agents, { recursive: true })
        writeFileSync(join(agents, 'tester.md'), '---\ndescription: runs the tests\n---\nRun the tests.\n')
      },
    })
    await see(READY)
    await send('/mcp')
    await see('test  tools come with the first request')
    press('Escape')
    await see(READY)
    await send('Hello.')
    await see('The file says')
    const pages: readonly (readonly [string, RegExp])[] = [
      ['/mcp', /test {2}\d+ tools\n +mcp__test__/],
      ['/hooks', /PreToolUse\n +.*"matcher":"Bash".*"command":"true"/],
      ['/agents', /tester {2}definition\n +runs the tests/],
    ]
    for (const [command, shown] of pages) {
      await send(command)
      await see(shown)
      press('Escape')
      await see(READY)
    }
  })

  it('/context begins at its top, and clears the result of a tool, which /undo restores', async () => {
    const { send, see, press, look } = await openWithTurns({ columns: 80, rows: 24 })
    await send('/context')
    await see(/^Context\n─+\n█/)
    for (let key = 0; key < 30 && !look().includes('❯'); key += 1) {
      press('Down')
      await wait(100)
    }
    await see(/❯ +\S+ {2}user or tool result 1 one/)
    press('p')
    await see('Context: pinned: every rewrite keeps it')
    await see(/❯ +\S+ {2}pinned user or tool result/)
    press('c')
    await see('Context: There is nothing to clear')
    press('u')
    await see('Context: no longer pinned')
    press('c')
    await see(/Context: \S+ tokens freed; \/undo restores them/)
    press('Escape')
    await see('△ Cleared 1 old tool result')
    await send('/undo')
    await see('Undone: the context is as it was before the clearing.')
  })

  it('/compact shows a preview first; /undo takes it back; the line opens to the receipt', async () => {
    const { send, see, press, lookBack } = await openWithTurns()
    await send('/compact keep the names')
    const preview = await see('Preview of the compaction: nothing has changed yet')
    expect(preview).toMatch(/→ \S+ tokens/)
    press('Escape')
    await see('Not compacted: the draft was discarded.')
    await send('/compact')
    await see('Preview of the compaction')
    press('Enter')
    await see('▲ Compacted:')
    press('C-t')
    await see('Open: what was done to the context')
    press('Enter')
    await see(/Replaced by the summary: \d+ records/)
    press('Escape')
    await see('Open: what was done')
    press('Escape')
    await see(READY)
    await send('/undo')
    await see('Undone: the context is as it was before the compaction.')
    expect(lookBack()).toContain('❯ Read a.txt, please.')
  })

  it('what is typed while a summary is written is sent after the compaction', async () => {
    const { send, see, press } = await openWithTurns({ script: slowSummary })
    await send('/compact')
    await see('writing the summary')
    await send('And then?')
    await see('queued: And then?')
    await see('Preview of the compaction')
    press('Enter')
    await see(/▲ Compacted:[\s\S]*❯ And then\?/)
  })

  it('/compact lets the summary be edited before it counts', async () => {
    const { send, see, press, home } = await openWithTurns({
      env: { EDITOR: '$HOME/edit.sh' },
      prepare: prepareEditor("sed -i '1s/.*/Edited by hand./'"),
    })
    await send('/compact')
    await see('Preview of the compaction')
    press('e')
    await see('Summary (edited)')
    press('Enter')
    await see('▲ Compacted:')
    expect(readLogs(home)).toContain('Edited by hand.')
  })

  it('/rewind goes back to before a message and gives it back to change; /clear begins anew', async () => {
    const { send, see, press, look } = await openWithTurns()
    await send('/rewind')
    await see('Messages in the context')
    press('Enter')
    await see(/─\n And now\?\n─/)
    press('C-c')
    await wait(200)
    await send('/undo')
    await see('The conversation is as it was before that.')
    await send('/clear')
    await see('A new conversation begins.')
    await send('/model claude-opus-5')
    await see('The model is now claude-opus-5.')
    expect(look()).toContain('claude-opus-5')
  })

  it('/fork goes on in a copy, and /resume returns to the first session', async () => {
    const { send, see, press } = await openWithTurns()
    await send('/fork')
    const copy = await see(/This is a copy of (chat-\S+), which/)
    const first = /This is a copy of (chat-[^,\s]+)/.exec(copy)?.[1] ?? ''
    await send('/resume')
    await see('Sessions of this folder')
    press('Enter')
    await see(`Resumed ${first}`)
  })

  it('are completed as they are typed, and paths after an at sign', async () => {
    const { type, see, press } = await openWithTurns()
    await type('/rev')
    await see(/\/review +reviews the code/)
    press('C-c')
    await type('Look at @a.')
    await see('→ a.txt')
    press('Tab')
    await see('Look at @a.txt')
  })
})
