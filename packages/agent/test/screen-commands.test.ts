/** Every slash command of the screen. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createSummarizer, type Script } from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'
import { findUserSettingsPath } from '../src/agent/settings.ts'
import { type ChatWorld, playSteps, type Step } from './chat-world.ts'
import { testServer } from './mcp-world.ts'
import { EMPTY_INPUT } from './screen-world.ts'
import { createVirtualScreen, type VirtualScreen, type VirtualScreenOptions } from './virtual-screen.ts'

/** The meter, which a panel hides; /context has another text after "left". */
const READY = /% left \d/
const READ: Step = { Read: { file_path: 'a.txt' } }
const steps = playSteps(READ, 'The file says **one**.', 'Second answer.', 'Third answer.')
const summarize = createSummarizer()

/** Plays the steps; a request for a summary gets one. */
const script: Script = (request, context) => {
  const last = JSON.stringify(request.messages.at(-1))
  return /summary/i.test(last) && !last.includes('tool_result')
    ? summarize(request, context)
    : steps(request, context)
}

const prepare = (world: ChatWorld): void => {
  world.write(
    'a.txt',
    `one\ntwo\n\u001b]0;title\u0007\n${'A line of the file that says little.\n'.repeat(800)}`,
  )
  world.write('CLAUDE.md', 'Always be brief.\n')
  world.write('.claude/commands/review.md', '---\ndescription: reviews the code\n---\nReview $ARGUMENTS.\n')
}

async function openWithTurns(
  options: VirtualScreenOptions & { readonly script?: Script } = {},
): Promise<VirtualScreen> {
  const usual = { columns: 120, rows: 40, prepare }
  const world = await createVirtualScreen(options.script ?? script, { ...usual, ...options })
  await world.see(READY)
  await world.send('Read a.txt, please.')
  await world.see('The file says one.')
  await world.send('And now?')
  await world.see('Second answer.')
  await world.seeIdle()
  return world
}

describe('slash commands', () => {
  it('that show something open a page, and escape closes it', async () => {
    const { send, see, press, read } = await openWithTurns()
    const pages: readonly (readonly [string, string | RegExp])[] = [
      ['/help', /\/compact \[instructions\][\s\S]*Ctrl-T/],
      [
        '/context',
        / of \S+ tokens · ▲ compacts at[\s\S]*By class[\s\S]*system prompt[\s\S]*By tool\n +Read[\s\S]*By file\n +a\.txt[\s\S]*Largest messages/,
      ],
      ['/cost', /spent in 3 calls[\s\S]*Context over time/],
      ['/memory', 'CLAUDE.md'],
      ['/sandbox', 'Off: commands are not confined'],
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
    await see('Written: ')
    expect(read('talk.md')).toContain('\u241b]0;title\u2407')
    await send('/export none/talk.md')
    await see(/There is no folder \S*none\./)
  })

  it('/mcp, /hooks and /agents show what the settings and the files have', async () => {
    const { see, seeIdle, send, press } = await createVirtualScreen(playSteps('The file says one.'), {
      columns: 120,
      rows: 40,
      prepare(world) {
        const path = findUserSettingsPath(world.env)
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
    // The tools of a server that is slow to start come with a later turn.
    for (let page = ''; !/test {2}\d+ tools\n +mcp__test__/.test(page); ) {
      await send('Hello.')
      await see('❯ Hello.')
      await seeIdle()
      await send('/mcp')
      page = await see(/MCP servers\n─+\ntest/)
      press('Escape')
      await see(READY)
    }
    const pages: readonly (readonly [string, RegExp])[] = [
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
    const { send, see, seeOther, press, look } = await openWithTurns({ columns: 80, rows: 24 })
    await send('/context')
    await see(/^Context\n─+\n█/)
    // A key at a time, because the list scrolls until its first row is visible.
    for (let key = 0; key < 30 && !look().includes('❯'); key += 1) {
      const before = look()
      press('Down')
      await seeOther(before)
    }
    await see(/❯ +\S+ {2}Read a\.txt 1 one/)
    press('p')
    await see('Pinned: every rewrite keeps it.')
    await see(/❯ +\S+ {2}pinned Read a\.txt/)
    press('c')
    await see('It is pinned, so it is not cleared: u unpins it.')
    press('u')
    await see('No longer pinned.')
    press('c')
    await see(/About \S+ tokens freed\. \/undo restores them\./)
    press('Escape')
    await see('△ Cleared 1 old tool result')
    await send('/undo')
    await see('Undone: the context is as it was before the clearing.')
  })

  it('/compact shows a preview first; /undo takes it back; the line opens to the receipt', async () => {
    const { send, see, press, lookBack } = await openWithTurns()
    await send('/compact keep the names')
    const preview = await see('Preview of the compaction: the context is unchanged so far')
    expect(preview).toMatch(/→ \S+ tokens\nThe draft has cost [\s\S]*Your instructions: keep the names/)
    press('Escape')
    await see(/Not compacted: the draft was discarded\. The draft has cost/)
    await send('/compact')
    await see('Preview of the compaction')
    // The numbers of the sections are those of the summary.
    press('End')
    await see(/^6\. All user messages$/m)
    press('Enter')
    await see('▲ Compacted:')
    press('C-t')
    await see('What can be opened')
    press('Enter')
    await see(/Replaced by the summary: \d+ messages and results/)
    press('Escape')
    await see('What can be opened')
    press('Escape')
    await see(READY)
    await send('/undo')
    await see('Undone: the context is as it was before the compaction.')
    expect(lookBack()).toContain('❯ Read a.txt, please.')
  })

  it('a resumed session has only the branch in use, with its rewrites, which open to their receipts', async () => {
    const { send, see, press, restart } = await openWithTurns()
    await send('/rewind')
    await see('Go back to before a message')
    press('Enter')
    await see(/─\n❯ And now\?\n─/)
    press('C-c')
    await see(EMPTY_INPUT)
    await send('Another way.')
    await see(/❯ Another way\.\n\nSecond answer\./)
    await send('/compact')
    await see('Preview of the compaction')
    press('Enter')
    await see('▲ Compacted:')
    await send('/exit')
    await see('EXIT 0')
    restart({ continue: true })
    const screen = await see(/▲ Compacted:[\s\S]*Resumed chat-[\s\S]*% left \d/)
    expect(screen).toContain('❯ Another way.')
    expect(screen).not.toContain('And now?')
    press('C-t')
    await see('What can be opened')
    press('Enter')
    await see(
      /Compacted: [\s\S]*When: 20[\s\S]*Why: you asked for it[\s\S]*Replaced by the summary: \d+ messages and results[\s\S]*Everything is in the log/,
    )
  })

  it('what is typed while a summary is written is sent after the compaction', async () => {
    const typed = Promise.withResolvers<void>()
    const slowSummary: Script = async (request, context) => {
      if (JSON.stringify(request.messages.at(-1)).includes('summary')) await typed.promise
      return script(request, context)
    }
    const { send, see, press } = await openWithTurns({ script: slowSummary })
    await send('/compact')
    await see('writing the summary')
    await send('And then?')
    const screen = await see('queued: And then?')
    // However long it takes, the status says what is being done.
    expect(screen).toContain('writing the summary')
    typed.resolve()
    await see('Preview of the compaction')
    press('Enter')
    await see(/▲ Compacted:[\s\S]*❯ And then\?/)
  })

  it('/rewind goes back to before a message and gives it back to change; /clear begins anew', async () => {
    const { send, see, press } = await openWithTurns()
    await send('/rewind')
    await see('Go back to before a message')
    press('Enter')
    await see(/─\n❯ And now\?\n─/)
    press('C-c')
    await see(EMPTY_INPUT)
    await send('/undo')
    await see('Undone: /rewind to before “And now?”. /redo takes this back.')
    await send('/clear')
    await see('A new conversation begins.')
    await send('/model opus')
    await see('There is no model opus. Did you mean claude-opus-')
    await send('/model')
    await see(
      /The model is claude-sonnet-5-5\. Go on with another one:[\s\S]*❯ claude-sonnet-5-5 +window 1M · \$/,
    )
    press('Escape')
    await see(READY)
    await send('/model claude-opus-5')
    await see(/The model is now claude-opus-5\.[\s\S]*spent[\s\S]*claude-opus-5/)
    await send('/exit')
    await see(/To go on: tidemark chat --resume chat-\S+ --model claude-opus-5 [\s\S]*EXIT 0/)
  })

  it('/undo names what it undoes, asks before newer messages leave, and /redo brings them back', async () => {
    const { send, see, press, lookAtColors } = await openWithTurns({ columns: 80, rows: 24 })
    await send('/redo')
    await see('There is no /undo to take back.')
    await send('/clear')
    await see('A new conversation begins.')
    // What left the context is dim: the sign of a prompt has lost its colour.
    await expect.poll(lookAtColors).not.toMatch(/\[36m❯.*And now/)
    await send('Something else.')
    await see(/❯ Something else\.[\s\S]*The file says one\./)
    await see(EMPTY_INPUT)
    await send('/undo')
    await see(/Undo \/clear\?\n1 newer message leaves the context[\s\S]*\/redo\s+brings it back[\s\S]*enter/)
    press('Enter')
    await see(/Undone: \/clear\. 1 newer message left the context/)
    await expect.poll(lookAtColors).toMatch(/\[36m❯.*And now/)
    await send('/redo')
    await see('Redone: /clear. /undo takes this back.')
  })

  it('/history finds what was left by /clear, with its age, opens it, and returns to the list', async () => {
    const { send, see, press, look } = await openWithTurns({ columns: 80, rows: 24 })
    await send('/history "no such words"')
    await see('Nothing found for "no such words".')
    await send('/clear')
    await see('A new conversation begins.')
    await send('/history file says')
    const list = await see(/\d places? with file says, the newest first/)
    expect(list).toMatch(/❯ \d+ s ago +Answer \(left by \/clear\) The file says/)
    expect(list).toMatch(/\d+ s ago +Read a\.txt \(left by \/clear\) /)
    expect(list).not.toMatch(/cursor|[0-9a-f]{8}-[0-9a-f]{4}|T\d\d:\d\d:/)
    press('Enter')
    await see(/^Answer, \d+ s ago, left by \/clear\n─+\nThe file says \*\*one\*\*\./)
    press('Escape')
    await see('the newest first')
    press('Escape')
    await see(READY)
    expect(look()).toContain('A new conversation begins.')
  })

  it('/rewind lists messages from before a compaction, and goes back to before them', async () => {
    const { send, see, press } = await openWithTurns({ columns: 80, rows: 24 })
    await send('/compact')
    await see('Preview of the compaction')
    press('Enter')
    await see('▲ Compacted:')
    await send('/rewind')
    await see(/❯ And now\? \(before the compaction\)\n +Read a\.txt, please\. \(before the compaction\)/)
    press('Enter')
    await see(/Went back to before “And now\?”/)
    await send('')
    await see(/to it\.\n\n❯ And now\?\n\nSecond answer/)
  })

  it('/fork goes on in a copy, and /resume returns to the first session', async () => {
    const { send, see, press } = await openWithTurns()
    await send('/fork')
    const copy = await see(/This is a copy of (chat-\S+), which/)
    const first = /This is a copy of (chat-[^,\s]+)/.exec(copy)?.[1] ?? ''
    await send('/cost')
    await see(
      /\$0(\.00)? spent in 0 calls since the fork\n\$0\.0[1-9] in 3 calls inherited from chat-\S+, counted there/,
    )
    press('Escape')
    await see(READY)
    await send('/resume')
    await see('Sessions of this folder')
    press('Enter')
    await see(`Resumed ${first}`)
  })

  it('that do not exist are not sent to the model', async () => {
    const { send, see, press, lookBack } = await openWithTurns()
    await send('/compcat all of it')
    await see('There is no command /compcat; nothing was sent. Did you mean /compact?')
    press('C-c')
    await send('/model nosuch')
    await see('There is no model nosuch. /model lists those that Tidemark knows.')
    await send('/resume nosuch')
    await see('There is no other session nosuch of this folder.')
    await send('/etc/hosts says what?')
    await see('Third answer.')
    expect(lookBack()).not.toContain('❯ /compcat')
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

  it('/permissions lists and withdraws what was allowed; Shift-Tab switches the mode', async () => {
    const calls: readonly Step[] = [
      { Bash: { command: 'wc one && ls' } },
      'First.',
      { Bash: { command: 'wc one two' } },
      'Second.',
      { Bash: { command: 'wc one three' } },
    ]
    const { see, send, press } = await createVirtualScreen(playSteps(...calls))
    await see(READY)
    await send('Go.')
    await see(/Run this command\?\n +wc one && ls\n[\s\S]*esc interrupt$/m)
    await see('do not ask again in this session for Bash(wc:*), Bash(ls:*)')
    press('2')
    await see('First.')
    await send('Go on.')
    await see('Second.')
    await send('/permissions')
    await see(/Allowed in this session\n❯ Bash\(wc:\*\)\n +Bash\(ls:\*\)[\s\S]*Rules of the settings/)
    press('d')
    await see(/Allowed in this session\n❯ Bash\(ls:\*\)/)
    press('Escape')
    await see('No longer allowed in this session: Bash(wc:*)')
    press('BTab')
    await see('edits allowed')
    press('BTab')
    await see('plan mode')
    press('BTab')
    await send('Once more.')
    const asked = await see(/Run this command\?\n +wc one three\n[\s\S]*esc interrupt$/m)
    expect(asked).not.toMatch(/plan mode|edits allowed/)
  })
})
