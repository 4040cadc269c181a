/** What the screen of `tidemark chat` leaves in the memory of the terminal. */
import type { Script } from '@tidemark/simulator'
import { expect, it, vi } from 'vitest'
import { createScreenWorld, hasTmux } from './screen-world.ts'

it.skipIf(!hasTmux)(
  'the screen leaves the scroll-back alone: what the shell printed before and every line once, whatever happens',
  async () => {
    const writes = Array.from({ length: 6 }, (_, file) => ({
      ...{ type: 'tool_use', id: `w${file}`, name: 'Write' },
      input: { file_path: `f${file}.txt`, content: `Row ${file}.\n`.repeat(9) },
    }))
    const text = (from: number): string =>
      Array.from({ length: 20 }, (_, line) => `Paragraph ${from + line}.`).join('\n\n')
    let turn = 0
    const script: Script = () => {
      turn += 1
      if (turn === 1) return { blocks: [{ type: 'text', text: text(0) }, ...writes] as never }
      const blocks = [{ type: 'text', text: text(20 * (turn - 1)) }] as never
      return { blocks }
    }
    const world = await createScreenWorld(script, {
      ...{ columns: 100, rows: 30, args: ['--permission-mode', 'allow-all'] },
      shellCommand: 'seq -f "SHELL %g." 50',
    })
    const { see, seeIdle, send, press, resize, lookBack } = world
    const countLines = (pattern: RegExp): readonly number[] =>
      [...lookBack().matchAll(pattern)].map(([, number]) => Number(number))
    // The screen is drawn in pieces: what was waited for can be there before the lines above it.
    const check = (): Promise<void> => vi.waitFor(checkNow, { timeout: 60_000, interval: 50 })
    const checkNow = (): void => {
      expect(countLines(/^SHELL (\d+)\.$/gm)).toEqual(Array.from({ length: 50 }, (_, line) => line + 1))
      expect(countLines(/^Paragraph (\d+)\.$/gm)).toEqual(
        Array.from({ length: 20 * turn }, (_, line) => line),
      )
      const titles = countLines(/^[○◐●] Write f(\d)\.txt$/gm)
      expect(titles.toSorted()).toEqual([0, 1, 2, 3, 4, 5])
    }
    await see('% left')
    await send('Go.')
    await see('Paragraph 39.')
    await seeIdle()
    await check()
    press('C-o')
    await see('shown in full from here on')
    await check()
    for (const [columns, rows] of [
      [60, 40],
      [120, 20],
      [100, 30],
    ] as const) {
      resize(columns, rows)
      await see(new RegExp(`^─{${columns}}\\n[\\s\\S]*${columns < 110 ? 'claude' : 'left'}`, 'm'))
      await check()
    }
    await send('More.')
    await see('Paragraph 59.')
    await seeIdle()
    await check()
    press('C-d')
    await see('EXIT 0')
    await check()
    expect(lookBack()).toMatch(/Paragraph 59\.\n\s*To go on: [^\n]*\nEXIT 0/)
  },
)
