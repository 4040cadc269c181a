import { describe, expect, it } from 'vitest'
import { type Cleanup, runCleanups } from './cleanups.ts'

function cleanups(seen: string[]): readonly Cleanup[] {
  const one = (name: string, scope: string): Cleanup => ({ name, scope, forget: () => void seen.push(name) })
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
