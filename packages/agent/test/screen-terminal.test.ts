/** The screen of `tidemark chat` in a real terminal, tmux: what depends on the terminal itself. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Script, withSummaries } from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'
import { playSteps } from './chat-world.ts'
import { createScreenWorld, hasTmux, waitForText } from './screen-world.ts'

const READY = '% left'

/** Answers slowly with numbered paragraphs, so that something can happen meanwhile. */
const slowAnswer: Script = () => ({
  blocks: [{ type: 'text', text: Array.from({ length: 80 }, (_, i) => `Paragraph ${i}.`).join('\n\n') }],
  delays: { pieceMs: 40 },
})

describe.skipIf(!hasTmux)('the screen in a real terminal', () => {
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

  it('keeps every line of a long answer once, also if the terminal is resized while it streams', async () => {
    const { see, seeIdle, send, resize, lookBack } = await createScreenWorld(slowAnswer)
    await see(READY)
    await send('Go.')
    for (const [columns, rows, until] of [
      [120, 40, 10],
      [200, 60, 25],
      [60, 20, 40],
      [100, 30, 55],
    ] as const) {
      // Behind the visible screen too: on a busy machine it may have scrolled away before anybody looks.
      await waitForText(lookBack, `Paragraph ${until}.`)
      resize(columns, rows)
    }
    await see('Paragraph 79.')
    await seeIdle()
    const numbers = [...lookBack().matchAll(/^Paragraph (\d+)\.$/gm)].map(([, number]) => Number(number))
    expect(numbers).toEqual(Array.from({ length: 80 }, (_, index) => index))
  })

  it('/compact gives the terminal to an editor, and what the user writes there is the summary', async () => {
    const steps = playSteps({ Read: { file_path: 'a.txt' } }, 'First answer.')
    const { send, see, press, home } = await createScreenWorld(withSummaries(steps), {
      ...{ columns: 120, rows: 40, env: { EDITOR: '$HOME/edit.sh' } },
      prepare(world) {
        world.write('a.txt', 'A line of the file that says little.\n'.repeat(800))
        const edit = `#!/bin/sh\nsed -i '1s/.*/Edited by hand./' "$1"\n`
        writeFileSync(join(world.folder, '..', 'edit.sh'), edit, { mode: 0o755 })
      },
    })
    await see(READY)
    await send('Read a.txt, please.')
    await see('First answer.')
    await send('/compact')
    await see('Preview of the compaction')
    press('e')
    await see('Summary (edited)')
    press('Enter')
    await see('▲ Compacted:')
    const sessions = join(home, 'sessions')
    const logs = readdirSync(sessions).filter((name) => name.endsWith('.jsonl'))
    expect(logs.map((name) => readFileSync(join(sessions, name), 'utf8')).join('')).toContain(
      'Edited by hand.',
    )
  })
})
