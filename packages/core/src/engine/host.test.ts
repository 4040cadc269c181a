import { describe, expect, it } from 'vitest'
import { type Hook, type HookResult, runHooks } from './hooks.ts'
import { type RewriteCleanup, runCleanups } from './host.ts'
import type { Deadlines } from './ports.ts'

/** Time is up at once for work that waits for ever. */
const deadlines: Deadlines = {
  within: async (_, work, signal) => {
    if (signal?.aborted === true) return { ok: false, why: 'aborted' }
    const late = new Promise<'late'>((resolve) => setImmediate(() => resolve('late')))
    const end = await Promise.race([work({ aborted: false }).then((value) => ({ value })), late])
    return end === 'late' ? { ok: false, why: 'timeout' } : { ok: true, value: end.value }
  },
}

async function ends(
  hooks: readonly Hook<number, { said: string }>[],
  signal?: { aborted: boolean },
): Promise<readonly HookResult<{ said: string }>[]> {
  const told: HookResult<{ said: string }>[] = []
  for await (const end of runHooks(hooks, 7, {
    deadlines,
    timeoutSeconds: 5,
    outputCharacters: 1_000,
    signal,
  }))
    told.push(end)
  return told
}

describe('hooks', () => {
  it('run in order; one that hangs or throws is told and stops none', async () => {
    const hooks: readonly Hook<number, { said: string }>[] = [
      { name: 'plain', run: (input) => ({ said: `got ${input}` }) },
      { name: 'hangs', timeoutSeconds: 2, run: () => new Promise(() => {}) },
      {
        name: 'throws',
        run: () => {
          throw new Error('broken')
        },
      },
      { name: 'says nothing', run: async () => undefined },
    ]
    expect(await ends(hooks)).toEqual([
      { name: 'plain', ok: true, output: { said: 'got 7' } },
      {
        name: 'hangs',
        ok: false,
        why: 'timeout',
        message: 'The hook hangs took longer than 2 seconds and was left.',
      },
      { name: 'throws', ok: false, why: 'threw', message: 'broken' },
      { name: 'says nothing', ok: true, output: undefined },
    ])
  })

  it('are not begun once the person has called it off', async () => {
    const signal = { aborted: false }
    const ran: string[] = []
    const hooks = ['a', 'b'].map((name) => ({
      name,
      run: () => {
        ran.push(name)
        signal.aborted = true
        return { said: name }
      },
    }))
    await ends(hooks, signal)
    expect(ran).toEqual(['a'])
  })
})

function cleanups(seen: string[]): readonly RewriteCleanup[] {
  const one = (name: string, scope: string): RewriteCleanup => ({
    name,
    scope,
    forget: () => void seen.push(name),
  })
  return [
    one('read state', 'main'),
    {
      name: 'broken',
      scope: 'main',
      forget: () => {
        throw new Error('no')
      },
    },
    one('approvals', 'main'),
    one('review', 'agent:review'),
  ]
}

const rewritten = { kind: 'compact' as const, toolUseIds: [], filePaths: [] }

describe('clean-ups', () => {
  it.each([
    ['sdk', ['read state', 'approvals'], 1],
    ['', ['read state', 'approvals'], 1],
    ['repl_main_thread:plan', ['read state', 'approvals'], 1],
    ['agent:review', ['review'], 0],
    ['agent:other', [], 0],
  ])('of %s', (source, names, faults) => {
    const seen: string[] = []
    const told = runCleanups(cleanups(seen), { ...rewritten, source })
    expect(seen).toEqual(names)
    expect(told).toEqual(Array(faults).fill({ name: 'broken', message: 'no' }))
  })
})
