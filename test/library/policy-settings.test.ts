/** Settings of the policy and of the account do what they say, against the simulator. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { anthropic } from 'tidemark'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestTidemark, type TestTidemarkOptions } from '../support/test-tidemark.ts'

let home = ''
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'tidemark-settings-'))
})
afterEach(() => {
  rmSync(home, { recursive: true, force: true, maxRetries: 10 })
})

interface SentBody {
  readonly model: string
  readonly messages: readonly unknown[]
}

async function runOnce(options: TestTidemarkOptions) {
  const made = createTestTidemark({ turns: 1, ...options })
  const session = await made.tide.open('s')
  expect(await session.run('Fix the login.', made.tools).outcome).toMatchObject({ ok: true })
  return { ...made, session }
}

describe('compact.direct.model', () => {
  it('is the model that the summary is asked of, with the same key and address', async () => {
    const { session, bodies, tide } = await runOnce({
      turns: 3,
      resultTokens: 4_000,
      policy: { compact: { direct: { model: 'claude-haiku-4-5' }, chain: { fork: false, block: false } } },
    })
    const before = bodies.length
    expect(await session.compact()).toMatchObject({ ok: true })
    const asked = bodies.slice(before).map((body) => (JSON.parse(body) as SentBody).model)
    expect(asked).toEqual(['claude-haiku-4-5'])
    await tide.close()
  })

  it('is refused, with the option to use instead, where the model cannot name another', () => {
    const { sibling: _sibling, ...model } = anthropic('claude-sonnet-5-5', { apiKey: 'any' })
    const policy = { compact: { direct: { model: 'small' } } }
    expect(() => createTestTidemark({ model, policy })).toThrow(/Give the option summariser instead/)
  })
})

describe('cache.breaks.diffFiles', () => {
  it('writes what changed beside the log, for the user alone, and nothing if it is off', async () => {
    for (const [id, diffFiles] of [
      ['on', true],
      ['off', false],
    ] as const) {
      const made = createTestTidemark({
        home,
        resultTokens: 4_000,
        policy: { cache: { breaks: { diffFiles } } },
      })
      const session = await made.tide.open(id)
      expect(await session.run('Fix the login.', made.tools).outcome).toMatchObject({ ok: true })
      // The provider loses its cache; nothing in the next request differs.
      made.simulator.advance(3_600_000)
      expect(await session.run('Go on.', made.tools).outcome).toMatchObject({ ok: true })
      await made.tide.close()
      const folder = join(home, 'sessions', id)
      const files = existsSync(folder) ? readdirSync(folder) : []
      const diffs = files.filter((name) => name.startsWith('cache-break-'))
      expect(diffs.length).toBe(diffFiles ? 1 : 0)
      for (const name of diffs) {
        expect(name).toMatch(/^cache-break-.*\.diff$/)
        expect(statSync(join(folder, name)).mode & 0o77).toBe(0)
        expect(readFileSync(join(folder, name), 'utf8').length).toBeGreaterThan(20)
      }
    }
  })
})

/** The lifetimes of all cache markers of the first request. */
async function readLifetimes(options: TestTidemarkOptions): Promise<ReadonlySet<string>> {
  const { bodies, tide } = await runOnce(options)
  await tide.close()
  const markers = bodies[0]?.match(/"cache_control":\{[^}]*\}/g) ?? []
  return new Set(markers.map((marker) => (marker.includes('"1h"') ? '1h' : '5m')))
}

describe('the cache lifetime', () => {
  const BEDROCK = 'https://bedrock-runtime.us-east-1.amazonaws.com'
  const bedrock = { ENABLE_PROMPT_CACHING_1H_BEDROCK: '1' }
  const entitled = { isEntitled: true, isOverage: false }

  it('knows Bedrock by the address and by the id of the model', () => {
    const isBedrock = (id: string, baseUrl = 'https://api.anthropic.com') =>
      anthropic(id, { apiKey: 'any', baseUrl }).isBedrock
    expect(isBedrock('claude-sonnet-5-5', BEDROCK)).toBe(true)
    expect(isBedrock('us.anthropic.claude-sonnet-4-5-v1:0')).toBe(true)
    expect(isBedrock('claude-sonnet-5-5')).toBe(false)
    expect(isBedrock('claude-sonnet-5-5', 'https://bedrock.example.com')).toBe(false)
  })

  it.each<[string, TestTidemarkOptions, string]>([
    ['nothing set', {}, '5m'],
    ['the switch for Bedrock, on Bedrock', { env: bedrock, baseUrl: BEDROCK }, '1h'],
    ['the switch for Bedrock, elsewhere', { env: bedrock }, '5m'],
    ['an entitled account', { entitlement: entitled }, '1h'],
    ['an account in overage', { entitlement: { ...entitled, isOverage: true } }, '5m'],
    ['an entitled account, a source that is not listed', { entitlement: entitled, source: 'other' }, '5m'],
  ])('%s: %s', async (_name, options, expected) => {
    expect(await readLifetimes(options)).toEqual(new Set([expected]))
  })
})
