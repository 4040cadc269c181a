/** Processes on one session at once, each with a compaction in hand: one wins, and nothing that anybody said is lost. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TurnHost } from '@tidemark/core/engine/host'
import { readSessionState } from '@tidemark/core/engine/session-state'
import { readAllRecords } from '@tidemark/core/testing'
import { createFileJournal } from 'tidemark'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Child, startChild } from '../../packages/tidemark/test/child-process.ts'
import { buildSession } from './interruptible-acts.ts'
import { nextBody } from './rewrite-acts.ts'
import { createRewriteHost, SESSION } from './rewrite-host.ts'

let home = ''
let racers: readonly Child[] = []
let host: TurnHost

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'tidemark-rewrites-'))
  const journal = createFileJournal({ home })
  host = createRewriteHost({ journal })
  await buildSession(host)
  await journal.close()
  const file = new URL('./racing-process.ts', import.meta.url).href
  racers = ['wren', 'lark'].map((name) => startChild(file, home, name))
  await Promise.all(racers.map((racer) => racer.heard('ready')))
})

afterEach(async () => {
  for (const { process } of racers) process.stdin?.end()
  await Promise.all(racers.map(({ ended }) => ended))
  rmSync(home, { recursive: true, force: true, maxRetries: 10 })
})

/** The next thing each of them says. */
async function all(command: string): Promise<readonly string[]> {
  const before = racers.map(({ said }) => said.length)
  for (const { process } of racers) process.stdin?.write(`${command}\n`)
  return Promise.all(racers.map(({ said }, index) => nextOf(said, before[index] ?? 0)))
}

async function nextOf(said: readonly string[], from: number): Promise<string> {
  while (said.length <= from) await new Promise((resolve) => setImmediate(resolve))
  return said[from] ?? ''
}

describe('two processes on one session', () => {
  it('both have made a summary: one commits, the other is told that it was superseded', async () => {
    expect(await all('prepare')).toEqual(['prepare: ok', 'prepare: ok'])
    expect((await all('commit')).toSorted()).toEqual(['commit: ok', 'commit: superseded'])
    const { view } = await readSessionState(host.journal, SESSION)
    expect(view.rewrites.map(({ kind }) => kind)).toEqual(['compact'])
    expect((await nextBody(host)).findings).toEqual([])
  })

  it('both speak and compact as they please: every word is in the log once, in order, and none is lost to the model', async () => {
    const rounds = 9
    const ends = await all(`work ${rounds}`)
    const compactions = ends.map((end) => Number(end.split(' ')[2]))
    const { records, damage } = await readAllRecords(host.journal, SESSION)
    const said = records.flatMap((record) => /(wren|lark) says number \d+\./.exec(textOf(record))?.[0] ?? [])
    for (const name of ['wren', 'lark'])
      expect(said.filter((text) => text.startsWith(name))).toEqual(
        Array.from({ length: rounds }, (_, round) => `${name} says number ${round}.`),
      )
    const { view } = await readSessionState(host.journal, SESSION)
    const { body, findings } = await nextBody(host)
    expect([damage, findings, view.rewrites.length]).toEqual([
      [],
      [],
      compactions.reduce((sum, count) => sum + count, 0),
    ])
    expect(said.filter((text) => !body.includes(text))).toEqual([])
    expect(Math.max(...compactions)).toBeGreaterThan(0)
  })
})

function textOf(record: object): string {
  const { type, message, isCompactSummary } = record as {
    type?: string
    message?: { content?: unknown }
    isCompactSummary?: boolean
  }
  return type === 'user' && isCompactSummary !== true && typeof message?.content === 'string'
    ? message.content
    : ''
}
