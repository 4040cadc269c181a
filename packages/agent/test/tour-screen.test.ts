/** The tour in a real terminal: its end opens the session on the screen of chat. */

import { readdirSync } from 'node:fs'
import { isFullRun } from '@tidemark/core/testing'
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
    const { see, press, send, restart, answerQuestion, folder } = await startTour(NO_KEY)
    await see('Enter: next screen')
    for (const title of ['1. Without', '2. With', '3. Lunch', '4. What survived', '5. The money']) {
      press('Enter')
      await see(new RegExp(`${title}[\\s\\S]*Enter: next screen`))
    }
    press('Enter')
    await see('Enter: try this session yourself')
    press('Enter')
    await see(/This is the session of the tour[\s\S]*% left/)
    await send('What now?')
    await answerQuestion(
      /I am a script[\s\S]*Change CHANGES\.md\?[\s\S]*\+ - The orders of Monday[\s\S]*1\. Yes/,
      '1',
    )
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
    expect(end).toContain('To go on with this session: npx tidemark tour --resume')
    expect(end).toMatch(/Delete its folder when you no longer need it: \/\S+/)
    expect(readdirSync(folder)).toEqual([])
    restart('--resume')
    await see(/What now\?[\s\S]*This is the session of the tour again[\s\S]*% left/)
    await send('And now?')
    await answerQuestion(/1\. Yes/, '1')
    await see(/And now\?[\s\S]*I have read the report of/)
    await send('/exit')
    await see(/EXIT 0\n icanon/)
  })

  it.runIf(isFullRun())(
    'can be skipped to the session, and a killed screen gives the terminal back',
    async () => {
      const { see, press, findPid, folder } = await startTour(NO_KEY)
      await see('s: skip to the session')
      press('s')
      await see(/This is the session of the tour[\s\S]*% left/)
      process.kill(findPid(), 'SIGTERM')
      await see(/EXIT \d+\n icanon/)
      expect(readdirSync(folder)).toEqual([])
    },
  )

  it('with a key, npm start opens chat', async () => {
    const { see, send } = await startTour({})
    await see(/Tidemark in [\s\S]*% left/)
    await send('Hi.')
    await see('Hello.')
  })
})
