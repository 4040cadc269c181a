import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { main } from '@tidemark/cli'
import { isFullRun } from '@tidemark/core/testing'
import type { Terminal } from '@tidemark/terminal/terminal'
import { afterAll, describe, expect, it } from 'vitest'

interface Played {
  readonly code: number
  readonly out: string
  readonly err: string
}

async function run(args: readonly string[], given: Partial<Terminal> = {}): Promise<Played> {
  let [out, err] = ['', '']
  const terminal: Terminal = {
    write: (text) => {
      out += text
    },
    warn: (text) => {
      err += text
    },
    env: { NO_COLOR: '1', TZ: 'UTC' },
    isTty: false,
    columns: 100,
    ...given,
  }
  return { code: await main(args, terminal), out, err }
}

const home = mkdtempSync(join(tmpdir(), 'tidemark-tour-home-'))
afterAll(() => rmSync(home, { recursive: true }))

/** Runs the tour in a terminal in which the user gives these answers, then Ctrl-C. */
function runInTerminal(...answers: readonly string[]): Promise<Played> {
  const left = [...answers]
  return run(['tour'], {
    isTty: true,
    isInputTty: true,
    rows: 24,
    env: { NO_COLOR: '1', TZ: 'UTC', TIDEMARK_HOME: home },
    askKey: async () => left.shift() ?? null,
  })
}

describe('tidemark tour', () => {
  it('runs through when piped, without colours, and says what to do next', async () => {
    const { code, out, err } = await run(['tour'])
    expect([code, err]).toEqual([0, ''])
    const words = [
      '1. Without Tidemark',
      '2. With Tidemark',
      '3. Lunch',
      '4. What survived',
      '5. The money',
      'npx tidemark inspect',
      'npx tidemark ui',
    ]
    expect(words.filter((word) => !out.includes(word))).toEqual([])
    expect(out).not.toContain('\u001b')
    expect(out.split('\n').filter((line) => line.length > 100)).toEqual([])
  })

  it('ends with exit code 130 and without a next step after Ctrl-C', async () => {
    const interruption = new AbortController()
    interruption.abort()
    const { code, out } = await run(['tour'], { interrupted: interruption.signal })
    expect([code, out]).toEqual([130, ''])
  })

  it.runIf(isFullRun())('as JSON is one value, with every step and the bills', async () => {
    const { code, out, err } = await run(['tour', '--json'])
    expect([code, err]).toEqual([0, ''])
    const { steps } = JSON.parse(out) as { readonly steps: readonly Record<string, unknown>[] }
    const kinds = new Set(steps.map(({ kind }) => kind))
    expect([...kinds].sort()).toEqual(['act', 'bills', 'chart', 'check', 'line', 'scene'])
  })
})

describe('in a terminal', () => {
  it('q stops after the screen that is shown', async () => {
    const { code, out } = await runInTerminal('enter', 'q')
    expect(code).toBe(0)
    expect([out.includes('1. Without Tidemark'), out.includes('2. With Tidemark')]).toEqual([true, false])
  })

  it('--resume without a kept session, or without a terminal, says what to do', async () => {
    const home = mkdtempSync(join(tmpdir(), 'tidemark-tour-home-'))
    try {
      const terminal = {
        isTty: true,
        isInputTty: true,
        askKey: async () => null,
        env: { TIDEMARK_HOME: home },
      }
      const missing = await run(['tour', '--resume'], terminal)
      expect([missing.code, missing.err]).toEqual([
        1,
        expect.stringContaining('there is no session of a tour'),
      ])
      const piped = await run(['tour', '--resume'])
      expect([piped.code, piped.err]).toEqual([2, expect.stringContaining('needs a terminal')])
    } finally {
      rmSync(home, { recursive: true })
    }
  })

  it('begins on an empty screen, without erasing what was there', async () => {
    const { out } = await runInTerminal('q')
    expect(out.startsWith(`${'\n'.repeat(24)}\u001b[H\u001b[J`)).toBe(true)
  })

  it('Ctrl-C instead of an answer ends with exit code 130', async () => {
    const { code, out } = await runInTerminal()
    expect([code, out.includes('1. Without Tidemark')]).toEqual([130, false])
  })
})
