/** Agents on OpenAI's APIs, and on the Messages API, that are killed in the middle of a stream at random moments. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { createRandomNumbers, isFullRun } from '@tidemark/core/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startChild } from '../../packages/tidemark/test/child-process.ts'
import { createKillWorld, type KillInput, PROMPT } from './kill-world.ts'

const KILLS = isFullRun() ? 5 : 1

async function killAtRandom(input: KillInput, random: () => number) {
  const child = startChild(new URL('./killed-process.ts', import.meta.url).href, JSON.stringify(input))
  await child.heard('asked')
  await wait(random() * 700)
  child.process.kill('SIGKILL')
  expect(await child.ended).toBe('SIGKILL')
  const readLines = (word: string) =>
    child.said.filter((line) => line.startsWith(word)).map((line) => line.slice(word.length + 1))
  return { answered: readLines('answered'), lists: readLines('list') }
}

describe.each(['responses', 'chat', 'messages'] as const)('an agent on the %s API', (api) => {
  it.each(['run', 'fetch'] as const)(
    'that is killed in the middle of a stream has lost nothing, and goes on: %s',
    async (way) => {
      const home = mkdtempSync(join(tmpdir(), 'tidemark-killed-'))
      onTestFinished(() => rmSync(home, { recursive: true, force: true, maxRetries: 10 }))
      const input: KillInput = { home, api, way }
      const random = createRandomNumbers(api.length * 10 + way.length)
      for (let kill = 0; kill < KILLS; kill += 1) {
        const { answered, lists } = await killAtRandom(input, random)
        const log = readFileSync(join(home, 'sessions', 'killed.jsonl'), 'utf8')
        for (const call of answered) expect(log).toContain(call)
        const world = createKillWorld(input)
        const { simulator } = world
        const tide = world.open(simulator.fetch)
        const session = await tide.open('killed')
        expect(session.damage.filter(({ kind }) => String(kind) !== 'torn')).toEqual([])
        expect(JSON.stringify(session.messages())).toContain(PROMPT)
        if (way === 'run') {
          await tide.close()
          await (await world.work(simulator.fetch, () => {}, 8))?.close()
        } else {
          const list = JSON.parse(lists.at(-1) ?? '[]')
          await world.workAsClient(tide.fetch({ session, fetch: simulator.fetch }), () => {}, 8, list)
          await tide.close()
        }
        expect(simulator.requests.length).toBeGreaterThan(0)
        expect(simulator.requests.filter(({ status }) => status >= 400)).toEqual([])
        const again = createKillWorld(input).open(simulator.fetch)
        const last = await again.open('killed')
        // The client would send the results of its last calls with its next request.
        const answer = last.messages().findLast(({ role }) => role === 'assistant')?.content ?? []
        const calls = typeof answer === 'string' ? [] : answer.filter(({ type }) => type === 'tool_use')
        const results = calls.map(({ id }) => ({
          type: 'tool_result' as const,
          tool_use_id: String(id),
          content: 'Done.',
        }))
        if (way === 'fetch') await last.append({ role: 'user', content: results })
        const before = JSON.stringify(last.messages())
        const compacted = await last.compact()
        expect(compacted, JSON.stringify(compacted).slice(0, 300)).toMatchObject({ ok: true })
        expect(JSON.stringify(last.messages())).not.toBe(before)
        expect(await last.undo()).toMatchObject({ ok: true })
        expect(JSON.stringify(last.messages())).toBe(before)
        await again.close()
      }
    },
  )
})
