import { describe, expect, it } from 'vitest'
import type { Terminal } from '../terminal.ts'
import { main } from './main.ts'

async function run(args: readonly string[]): Promise<{ code: number; out: string; err: string }> {
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
  }
  return { code: await main(args, terminal), out, err }
}

interface TourJson {
  readonly steps: readonly {
    readonly kind: string
    readonly text: string
    readonly data?: Record<string, unknown>
  }[]
}

describe('tidemark tour', () => {
  it('shows inspection, clearing, cache breaks, both ways to compact, undo and cost', async () => {
    const { code, out, err } = await run(['tour'])
    expect([code, err]).toEqual([0, ''])
    const words = [
      'Context over time',
      'Cleared 16 old tool results:',
      'tokens re-cached',
      'Pays for itself in 6 calls.',
      'Cache broke',
      'Plan: summarize',
      'Draft:',
      'Compacted by the model',
      'Undone: the next request is byte for byte the same as before.',
      'Compacted without a model',
      'The prompt cache saved',
    ]
    expect(words.filter((word) => !out.replace(/\s+/g, ' ').includes(word))).toEqual([])
    expect(out.split('\n').filter((line) => line.length > 100)).toEqual([])
  })

  it('ends with exit code 130 and without a next step after Ctrl-C', async () => {
    const interruption = new AbortController()
    interruption.abort()
    let out = ''
    const write = (text: string): void => {
      out += text
    }
    const terminal = { write, warn: () => {}, env: {}, isTty: false, columns: 100 }
    expect(await main(['tour'], { ...terminal, interrupted: interruption.signal })).toBe(130)
    expect(out).not.toContain('Next:')
  })

  it('as JSON is one value, with the cost', async () => {
    const { code, out, err } = await run(['tour', '--json'])
    expect([code, err]).toEqual([0, ''])
    const { steps }: TourJson = JSON.parse(out)
    const money = steps.at(-1)?.data?.money as { readonly spent: { readonly total: number } }
    expect(money.spent.total).toBeGreaterThan(0)
    expect(steps.filter(({ text }) => text.startsWith('Stopped'))).toEqual([])
    expect(steps.find(({ data }) => data?.isSame !== undefined)?.data?.isSame).toBe(true)
  })
})
