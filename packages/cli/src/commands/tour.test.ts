import { describe, expect, it } from 'vitest'
import { main } from '../main.ts'
import type { Terminal } from '../terminal.ts'

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

interface Told {
  readonly steps: readonly {
    readonly kind: string
    readonly text: string
    readonly data?: Record<string, unknown>
  }[]
}

describe('tidemark tour', () => {
  it('shows a session inspected, cleared, broken, compacted both ways, undone and billed', async () => {
    const { code, out, err } = await run(['tour'])
    expect([code, err]).toEqual([0, ''])
    const words = [
      'Context over time',
      'cleared',
      'Cache broke',
      'plan:',
      'draft:',
      'compacted by the model',
      'undone: the next request is byte for byte what it was',
      'compacted without a model',
      'saved by the cache',
    ]
    expect(words.filter((word) => !out.replace(/\s+/g, ' ').includes(word))).toEqual([])
    expect(out.split('\n').filter((line) => line.length > 100)).toEqual([])
  })

  it('as JSON is one value, with the money', async () => {
    const { code, out, err } = await run(['tour', '--json'])
    expect([code, err]).toEqual([0, ''])
    const { steps }: Told = JSON.parse(out)
    const money = steps.at(-1)?.data?.money as { readonly spent: { readonly total: number } }
    expect(money.spent.total).toBeGreaterThan(0)
    expect(steps.filter(({ text }) => text.startsWith('halted'))).toEqual([])
    expect(steps.find(({ data }) => data?.isSame !== undefined)?.data?.isSame).toBe(true)
  })
})
