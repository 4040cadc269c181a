import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { isNonPublicAddress } from '../../src/tools/network-address.ts'
import { ADDRESSES, PATTERNS } from './hang-attacks.ts'

const script = fileURLToPath(new URL('./hang-attempts.ts', import.meta.url))

interface Attempt {
  readonly name: string
  readonly place: string
  readonly attempt: string
  readonly result: 'refused' | 'matched'
}

describe('no pattern of a repository or a model hangs the agent', () => {
  it('in ignore files, globs of tools and rules for paths, commands and addresses', () => {
    // A process that hangs is ended here; before, four backslashes were enough.
    const printed = execFileSync(process.execPath, ['--conditions=tidemark-source', script], {
      encoding: 'utf8',
      timeout: 120_000,
      killSignal: 'SIGKILL',
    })
    const attempts: readonly Attempt[] = JSON.parse(printed)
    expect(attempts).toHaveLength(PATTERNS.flatMap((each) => each.attempts).length * 5)
    const refused = PATTERNS.filter(({ expected }) => expected === 'refused').map(({ name }) => name)
    // Braces mean nothing in commands and ignore files.
    const globPlaces = ['tool glob', 'path rule', 'address rule']
    const taken = attempts.filter(
      ({ name, place, result }) =>
        refused.includes(name) && globPlaces.includes(place) && result !== 'refused',
    )
    expect(taken).toEqual([])
  })
})

describe('web pages are fetched from the public internet only', () => {
  it.each(
    ADDRESSES.flatMap((each) => each.attempts.map((attempt) => [each.name, attempt, each.expected] as const)),
  )('%s: %s is %s', (_, address, expected) => {
    expect(isNonPublicAddress(address)).toBe(expected === 'refused')
  })
})
