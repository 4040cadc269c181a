import { anthropic, createTidemark, type NotesStore, openai, type TidemarkOptions } from 'tidemark'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createTestTidemark } from '../support/test-tidemark.ts'

const model = anthropic('claude-sonnet-5-5', { apiKey: 'any' })

beforeEach(() => {
  vi.stubEnv('ANTHROPIC_API_KEY', '')
  vi.stubEnv('ANTHROPIC_AUTH_TOKEN', '')
})
afterEach(() => {
  vi.unstubAllEnvs()
})

describe('options that are wrong are named in one line', () => {
  it.each<[string, unknown, string]>([
    ['model', {}, 'createTidemark: no model. Give one, as in { model: anthropic("claude-sonnet-5-5") }.'],
    [
      'model',
      { model: 'claude-sonnet-5-5' },
      'createTidemark: model is "claude-sonnet-5-5"; expected a model, as returned by anthropic("claude-sonnet-5-5").',
    ],
    ['memory', { model, memory: 'yes' }, 'createTidemark: memory is "yes"; expected true or false.'],
    [
      'memory',
      { model, memory: true, home: '/x' },
      'createTidemark: memory keeps nothing on disk; remove home and journal, or memory.',
    ],
    [
      'journal',
      { model, journal: {} },
      'createTidemark: journal is an object; expected an object with read, append, list, release.',
    ],
    [
      'history',
      { model, history: '' },
      'createTidemark: history is ""; expected true, false, or a name for the tool.',
    ],
  ])('%s', (option, options, message) => {
    expect(() => createTidemark(options as TidemarkOptions)).toThrow(
      expect.objectContaining({ code: 'bad-option', message, details: { option } }),
    )
  })

  it('a name that is no option', () => {
    expect(() => createTidemark({ model, carrier: [] } as unknown as TidemarkOptions)).toThrow(
      'createTidemark: unknown option carrier. Did you mean carriers?',
    )
    expect(() => createTidemark({ modle: model } as unknown as TidemarkOptions)).toThrow(
      'createTidemark: unknown option modle. Did you mean model?',
    )
    expect(() =>
      createTidemark({ model, hostTools: { clearble: [] } } as unknown as TidemarkOptions),
    ).toThrow('hostTools: unknown option clearble. Did you mean clearable?')
    expect(() => createTidemark({ model, colour: 1 } as unknown as TidemarkOptions)).toThrow(
      /^createTidemark: unknown option colour\. Known: model, home, /,
    )
  })

  it('a name that is no option of a session', async () => {
    const { tide } = createTestTidemark()
    await expect(tide.open('a', { modle: model } as object)).rejects.toThrow(
      'open: unknown option modle. Did you mean model?',
    )
    const session = await tide.open('a')
    await expect(session.export({ titel: 'x' } as object)).rejects.toThrow(
      'export: unknown option titel. Did you mean title?',
    )
    expect(() => session.run('Hi', { tool: {} } as object)).toThrow('run: unknown option tool. Did you mean')
  })

  it.each<[string, Partial<TidemarkOptions>]>([
    ['The home', { home: import.meta.filename }],
    ['TIDEMARK_HOME', { env: { TIDEMARK_HOME: import.meta.filename } }],
    ['The home', { home: `${import.meta.filename}/below` }],
  ])('%s that is a file', (name, options) => {
    expect(() => createTidemark({ model, ...options })).toThrow(
      expect.objectContaining({ code: 'bad-home', details: { name, value: expect.any(String) } }),
    )
  })

  it('figures of the policy and a home keep their own words', () => {
    expect(() => createTidemark({ model, memory: true, policy: { ladder: 3 } as never })).toThrow(
      expect.objectContaining({ code: 'bad-policy' }),
    )
    expect(() => createTidemark({ model, home: 'here' })).toThrow(
      expect.objectContaining({ code: 'bad-home' }),
    )
  })
})

describe('anthropic', () => {
  it.each<[string, object, string]>([
    [
      'claude-sonnet-5-5',
      {},
      'anthropic("claude-sonnet-5-5"): no API key. Set ANTHROPIC_API_KEY, or give apiKey or authToken; for the simulator any text will do.',
    ],
    [
      'nobody-knows-1',
      { apiKey: 'any' },
      'anthropic("nobody-knows-1"): the catalogue has no such model. Give its figures, as in anthropic("nobody-knows-1", { window: 200_000, maxOutput: 64_000 }), or name a similar model with like.',
    ],
    [
      'gpt-5.5',
      { apiKey: 'any' },
      'anthropic("gpt-5.5"): a model of openai, which https://api.anthropic.com does not have. Name a model of anthropic, or give the baseUrl of a server that offers this one through the same API.',
    ],
    [
      'nobody-knows-1',
      { apiKey: 'any', maxOutput: 8_000 },
      'anthropic("nobody-knows-1"): the context window of this model is not known. Give it, as in anthropic("nobody-knows-1", { window: 200_000 }).',
    ],
    [
      'claude-sonnet-5-5',
      { apiKey: 'any', window: -1 },
      'anthropic("claude-sonnet-5-5"): window: expected a whole number of 1 or more, or null if it is not known; got -1.',
    ],
    [
      'claude-sonnet-5-5',
      { apiKey: 'any', baseUrl: 'not a url' },
      'anthropic("claude-sonnet-5-5"): baseUrl is "not a url"; expected an address such as https://api.anthropic.com.',
    ],
    [
      'claude-sonnet-5-5',
      { apikey: 'any' },
      'anthropic("claude-sonnet-5-5"): unknown option apikey. Did you mean apiKey?',
    ],
    [
      '',
      { apiKey: 'any' },
      'anthropic(id): expected the id of a model, as in anthropic("claude-sonnet-5-5").',
    ],
  ])('%s %j is refused', (id, options, message) => {
    expect(() => anthropic(id, options)).toThrow(expect.objectContaining({ code: 'bad-option', message }))
  })

  it('openai("claude-sonnet-5-5") at its own address is refused', () => {
    expect(() => openai('claude-sonnet-5-5', { apiKey: 'any' })).toThrow(
      'openai("claude-sonnet-5-5"): a model of anthropic, which https://api.openai.com does not have.',
    )
    expect(openai('claude-sonnet-5-5', { apiKey: 'any', baseUrl: 'http://localhost:4000/v1' }).id).toBe(
      'claude-sonnet-5-5',
    )
  })

  it('takes the key from the environment, and figures from whoever names a model', () => {
    vi.stubEnv('ANTHROPIC_API_KEY', 'from the environment')
    expect(anthropic('claude-sonnet-5-5').window).toBe(1_000_000)
    const own = anthropic('nobody-knows-1', {
      window: 90_000,
      maxOutput: 4_000,
      prices: { input: 1, output: 5 },
    })
    expect([own.window, own.maxOutput, own.priceList('nobody-knows-1', '2026-01-01')?.output]).toEqual([
      90_000, 4_000, 5,
    ])
    const like = anthropic('house-model', { like: 'claude-sonnet-5-5' })
    expect([like.window, like.profile.thinking.binding]).toEqual([1_000_000, 'prefix'])
  })
})

describe('a Tidemark', () => {
  it('lists its sessions, opens each once, and lets go of all when it is closed', async () => {
    const { tide } = createTestTidemark()
    const [b, a] = [await tide.open('b'), await tide.open('a')]
    await Promise.all([a, b].map((session) => session.append({ role: 'user', content: 'hello' })))
    expect(await tide.sessions()).toEqual(['a', 'b'])
    await expect(tide.open('a')).rejects.toMatchObject({ code: 'busy' })
    await a.close()
    expect((await tide.open('a')).messages()).toEqual([{ role: 'user', content: 'hello' }])
    await tide.close()
    await expect(b.append({ role: 'user', content: 'late' })).rejects.toMatchObject({ code: 'closed' })
  })

  it('says so where the larger reserve does not fit the window, at opening and after a switch of model', async () => {
    const notices: string[] = []
    const { tide, simulator } = createTestTidemark({
      policy: { ladder: { reserve: { rule: 'larger' } } },
      window: 100_000,
      maxOutput: 64_000,
      onEvent: (event) => void (event.type === 'notice' && notices.push(event.message)),
    })
    const session = await tide.open('a')
    const notice =
      'ladder.reserve asks for 64000 tokens of the window of 100000; 25000 are reserved, because ladder.reserve.maximumPercent is 25. Responses have at most that many tokens.'
    expect(notices).toEqual([notice])
    const fetch = simulator.fetch as typeof globalThis.fetch
    const choose = (window: number) =>
      anthropic('claude-sonnet-5-5', { apiKey: 'any', fetch, window, maxOutput: 64_000 })
    await session.switchModel(choose(400_000))
    expect(notices).toEqual([notice])
    await session.switchModel(choose(200_000))
    expect(notices[1]).toContain('64000 tokens of the window of 200000; 50000 are reserved')
  })

  it('tells of switches that nobody understands, and heeds those that are set', async () => {
    const told: unknown[] = []
    const env = { DISABLE_COMPACT: '1', DISABLE_AUTO_COMPACT: 'perhaps' }
    const { tide } = createTestTidemark({ env, onEvent: (event, id) => told.push([id, event]) })
    const session = await tide.open('a')
    expect(told).toEqual([
      [
        'a',
        {
          type: 'notice',
          message:
            'DISABLE_AUTO_COMPACT is "perhaps" and was ignored: expected 1, true, yes or on to set it, 0, false, no or off not to.',
        },
      ],
    ])
    await session.append({ role: 'user', content: 'hello' })
    expect(await session.compact()).toEqual({
      ok: false,
      reason: 'off',
      message: 'Compaction is switched off by DISABLE_COMPACT. Unset it to compact.',
    })
  })
})

describe('the option notesStore', () => {
  it('of a store keeps the notes there, and the session reads them', async () => {
    const kept = new Map<string, Parameters<NotesStore['write']>[1]>()
    const store: NotesStore = {
      read: async (id) => kept.get(id) ?? null,
      write: async (id, notes) => void kept.set(id, notes),
      readOverrides: async () => ({}),
      path: (id) => `database/${id}`,
      claim: async () => ({ release: async () => {} }),
      readClaim: async () => null,
    }
    const { tide, tools } = createTestTidemark({ notesStore: store, turns: 6, resultTokens: 3_000 })
    const session = await tide.open('talk')
    expect(await session.notes()).toBeNull()
    await session.run('Fix the login.', tools).outcome
    await session.close()
    expect(kept.get('talk')?.text).toContain('Fix the login.')
    expect(await session.notes()).toEqual(kept.get('talk'))
  })
})

describe('the option notes', () => {
  it.each([
    [true, 'notes is true; expected { model: true } or { model: false }'],
    [{ model: 'yes' }, 'expected { model: true } or { model: false }'],
    [{ modle: true }, 'notes: unknown option modle. Did you mean model?'],
  ])('%o is refused, with what it takes', async (notes, message) => {
    const { tide } = createTestTidemark()
    const opening = tide.open('other', { notes: notes as never })
    await expect(opening).rejects.toMatchObject({
      code: 'bad-option',
      message: expect.stringContaining(message),
    })
  })

  it.each([
    [{ extractor: 'local' as const }, "notes.extractor is 'local'"],
    [{ enabled: false }, 'notes.enabled is false'],
  ])('says that it has no effect where the policy is %o', async (notes, why) => {
    const notices: string[] = []
    const { tide } = createTestTidemark({
      notes: { model: true },
      policy: { notes },
      onEvent: (event) => void (event.type === 'notice' && notices.push(event.message)),
    })
    await tide.open('talk')
    await expect.poll(() => notices.join()).toContain(why)
  })
})
