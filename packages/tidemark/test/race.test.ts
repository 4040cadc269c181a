import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createFileJournal } from '../src/storage/file-journal.ts'
import { type Child, startChild } from './child-process.ts'

let home = ''
let racers: Child[] = []
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'tidemark-race-'))
})
afterEach(async () => {
  for (const racer of racers) racer.process.kill('SIGKILL')
  await Promise.all(racers.map(({ ended }) => ended))
  rmSync(home, { recursive: true, force: true, maxRetries: 10 })
})

async function start(count: number): Promise<void> {
  racers = Array.from({ length: count }, () => startChild('./lock-process.ts', home))
  await Promise.all(racers.map((racer) => racer.heard('ready')))
}

/** The next line of each process after `go`. */
async function race(field: readonly Child[]): Promise<readonly string[]> {
  const before = field.map(({ said }) => said.length)
  for (const { process } of field) process.stdin?.write('go\n')
  return Promise.all(field.map(({ said }, index) => nextOf(said, before[index] ?? 0)))
}

async function nextOf(said: readonly string[], from: number): Promise<string> {
  while (said.length <= from) await new Promise((resolve) => setImmediate(resolve))
  return said[from] ?? ''
}

function holder(): unknown {
  return JSON.parse(readFileSync(join(home, 'sessions', 's.lock'), 'utf8')).pid
}

describe('processes that open the same session', () => {
  it('one gets it; when it is killed, one of the others does, until none is left', async () => {
    await start(6)
    let field = racers
    while (field.length > 0) {
      const results = await race(field)
      const winner = field[results.indexOf('won')]
      expect(results.filter((result) => result === 'won')).toEqual(['won'])
      expect(holder()).toBe(winner?.process.pid)
      for (const result of results.filter((said) => said !== 'won'))
        expect(result).toMatch(
          /^lost Session "s" is open for writing by racer \(process \d+ on .+\) since .+: close it there first/,
        )
      winner?.process.kill('SIGKILL')
      await winner?.ended
      field = field.filter((racer) => racer !== winner)
    }
    const journal = createFileJournal({ home })
    expect(await journal.acquire('s')).toEqual({ ok: true })
    await journal.close()
    expect(readdirSync(join(home, 'sessions'))).toEqual([])
  })

  it('a process that exits normally leaves no lock', async () => {
    await start(1)
    expect(await race(racers)).toEqual(['won'])
    racers[0]?.process.stdin?.end()
    expect(await racers[0]?.ended).toBe('0')
    expect(existsSync(join(home, 'sessions', 's.lock'))).toBe(false)
  })
})
