/** The tour in a real terminal: its end opens the session on the screen of chat. */
import { readdirSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { playSteps } from './chat-world.ts'
import { createScreenWorld, hasTmux, type ScreenWorld } from './screen-world.ts'

/** The meter, which a panel hides; /context has another text after "left". */
const READY = /% left \d/
/** The temporary folder of the tour is then in the working directory. */
const NO_KEY = { ANTHROPIC_API_KEY: '', TMPDIR: '.' }

/** Runs what `npm start` runs in a terminal. */
function startTour(env: Readonly<Record<string, string>>): Promise<ScreenWorld> {
  return createScreenWorld(playSteps('Hello.'), {
    columns: 100,
    rows: 40,
    command: 'tour --or-chat',
    env,
  })
}

describe.skipIf(!hasTmux)('the tour in a terminal', () => {
  it('without a key runs to its end, and its session can be tried on the screen', async () => {
    const { see, press, send, folder } = await startTour(NO_KEY)
    for (const title of ['1. Without', '2. With', '3. Lunch', '4. What survived', '5. The money']) {
      await see('Enter: next screen')
      press('Enter')
      await see(title)
      await wait(200)
    }
    await see(/5\. The money[\s\S]*Enter: next screen/)
    press('Enter')
    await see('Enter: try this session yourself')
    press('Enter')
    await see(/This is the session of the tour[\s\S]*% left/)
    await send('What now?')
    await see(/I am a script[\s\S]*Edit CHANGES\.md[\s\S]*\+ - The orders of Monday[\s\S]*1\. Yes/)
    await wait(400)
    press('1')
    await see('Try /context to see what fills the window.')
    await send('/context')
    await see(/By class\n +tool results/)
    press('Escape')
    await see(READY)
    await send('/compact')
    await see('Preview of the compaction')
    press('Enter')
    await see('▲ Compacted:')
    await send('/undo')
    await see('Undone: the context is as it was before the compaction.')
    await send('/exit')
    const end = await see(/EXIT 0\n icanon/)
    expect(end).not.toContain('To go on:')
    expect(readdirSync(folder)).toEqual([])
  })

  it('can be skipped to the session, and a killed screen gives the terminal back', async () => {
    const { see, send, findPid, folder } = await startTour(NO_KEY)
    await see('s: skip to the session')
    await send('s')
    await see(/This is the session of the tour[\s\S]*% left/)
    process.kill(findPid(), 'SIGTERM')
    await see(/EXIT \d+\n icanon/)
    expect(readdirSync(folder)).toEqual([])
  })

  it('with a key, npm start opens chat', async () => {
    const { see, send } = await startTour({})
    await see(/Tidemark in [\s\S]*% left/)
    await send('Hi.')
    await see('Hello.')
  })
})
