import { countPropertyRuns } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { TidemarkError } from '../errors.ts'
import { createPolicy, DEFAULT_POLICY } from './create-policy.ts'
import { type Policy, policyFieldPaths, policyFields, readPolicyValue } from './policy.ts'
import { type FieldSpecTree, isFieldSpec } from './policy-fields.ts'

/** Untyped, as given by JavaScript and JSON files. */
const create = createPolicy as (overrides: unknown) => Policy

function errorOf(overrides: unknown): TidemarkError {
  try {
    create(overrides)
  } catch (error) {
    if (error instanceof TidemarkError) return error
    throw error
  }
  throw new Error(`expected an error for ${JSON.stringify(overrides)}`)
}

function problemsOf(overrides: unknown): readonly string[] {
  const { problems } = errorOf(overrides).details as { problems: readonly { readonly message: string }[] }
  return problems.map(({ message }) => message)
}

/** `{ a: { b: value } }` for `a.b`. */
function at(path: string, value: unknown): unknown {
  return path.split('.').reduceRight((inner, key) => ({ [key]: inner }), value)
}

describe('createPolicy', () => {
  it('returns the defaults without overrides', () => {
    expect(createPolicy()).toEqual(DEFAULT_POLICY)
    expect(createPolicy({ clear: { idle: { keep: undefined } }, notes: undefined })).toEqual(DEFAULT_POLICY)
  })

  it('has every default of the tiers, the thresholds and the cache', () => {
    expect({
      ladder: DEFAULT_POLICY.ladder,
      idle: DEFAULT_POLICY.clear.idle,
      budget: DEFAULT_POLICY.clear.budget,
      cached: DEFAULT_POLICY.clear.cached,
      files: DEFAULT_POLICY.rehydrate.files,
      skills: DEFAULT_POLICY.rehydrate.skills,
      kept: DEFAULT_POLICY.notes.kept,
    }).toEqual({
      ladder: {
        reserve: { rule: 'smaller', tokens: 20_000, maximumPercent: 25 },
        autoCompact: { tokens: 13_000, maximumPercent: 6.5, percentOfEffective: null },
        warning: { tokens: 20_000, maximumPercent: 10 },
        error: { tokens: 20_000, maximumPercent: 10 },
        blocking: { tokens: 3_000, maximumPercent: 1.5 },
        minimumUsableTokens: 2_000,
      },
      idle: { afterMinutes: 'ttl', keep: 5, minimumFreedTokens: 5_000 },
      budget: { keep: 3, targetTokens: 40_000, minimumFreedTokens: 20_000 },
      cached: { fireAt: 12, keep: 5 },
      files: {
        count: 20,
        eachTokens: 7_000,
        middleRank: 5,
        middleTokens: 3_000,
        lastRank: 11,
        lastTokens: 1_200,
        totalTokens: 30_000,
        readTools: ['Read'],
        writeTools: ['Edit', 'MultiEdit', 'Write', 'NotebookEdit'],
      },
      skills: { eachTokens: 5_000, totalTokens: 25_000 },
      kept: { minimumTokens: 1_500, minimumMessages: 5, maximumTokens: 3_000 },
    })
  })

  it('applies overrides to the defaults; a list replaces the default list', () => {
    const policy = createPolicy({ clear: { tools: ['Read', 'Search'], budget: { keep: 4 } } })
    expect(policy).toEqual({
      ...DEFAULT_POLICY,
      clear: {
        ...DEFAULT_POLICY.clear,
        tools: ['Read', 'Search'],
        budget: { keep: 4, targetTokens: 40_000, minimumFreedTokens: 20_000 },
      },
    })
  })

  it('is deeply frozen and keeps no list of the caller', () => {
    const tools = ['Read']
    const policy = createPolicy({ clear: { tools } })
    tools.push('Bash')
    expect(policy.clear.tools).toEqual(['Read'])
    for (const path of policyFieldPaths) {
      const parent = path.split('.').slice(0, -1).join('.')
      expect(Object.isFrozen(readPolicyValue(policy, parent))).toBe(true)
      expect(Object.isFrozen(readPolicyValue(policy, path))).toBe(true)
    }
    expect(Object.isFrozen(policy)).toBe(true)
  })

  it('accepts the default policy, and its own result, before and after a JSON round trip', () => {
    const policy = createPolicy({ cache: { ttl: '5m' }, clear: { idle: { afterMinutes: 5 } } })
    expect(createPolicy(DEFAULT_POLICY)).toEqual(DEFAULT_POLICY)
    expect(createPolicy(policy)).toEqual(policy)
    expect(create(JSON.parse(JSON.stringify(policy)))).toEqual(policy)
  })
})

describe('a wrong field', () => {
  it.each([
    [{ clear: { idle: { keep: -1 } } }, 'clear.idle.keep: got -1, allowed is a whole number of 0 or more'],
    [{ clear: { idle: { keep: 2.5 } } }, 'clear.idle.keep: got 2.5, allowed is a whole number of 0 or more'],
    [
      { clear: { cached: { fireAt: Number.NaN } } },
      'clear.cached.fireAt: got NaN, allowed is a whole number of 1 or more',
    ],
    [
      { notes: { startTokens: Infinity } },
      'notes.startTokens: got Infinity, allowed is a whole number of 0 or more',
    ],
    [
      { notes: { startTokens: '10000' } },
      'notes.startTokens: got "10000", allowed is a whole number of 0 or more',
    ],
    [{ notes: { startTokens: null } }, 'notes.startTokens: got null, allowed is a whole number of 0 or more'],
    [
      { ladder: { warning: { maximumPercent: 0.05 } } },
      'ladder.warning.maximumPercent: got 0.05, allowed is a percentage from 0.1 to 100 (25 means 25%)',
    ],
    [{ cache: { ttl: '1d' } }, `cache.ttl: got "1d", allowed is 'auto' or 'short' or 'long' or '5m' or '1h'`],
    [
      { clear: { idle: { afterMinutes: 'never' } } },
      `clear.idle.afterMinutes: got "never", allowed is a whole number of 5 or more, or 'ttl'`,
    ],
    [
      { clear: { tools: 'Read' } },
      'clear.tools: got "Read", allowed is a list without repeats, each item a string that is not blank',
    ],
    [
      { clear: { tools: ['Read', 'Read'] } },
      'clear.tools: got ["Read", "Read"], allowed is a list without repeats, each item a string that is not blank',
    ],
    [{ notes: { enabled: 1 } }, 'notes.enabled: got 1, allowed is true or false'],
    [
      { compact: { direct: { model: '' } } },
      'compact.direct.model: got "", allowed is a string that is not blank, or null',
    ],
    [
      { window: 200_000 },
      'window: got 200000, allowed is a plain object with any of the fields givenTokens, givenOutputTokens, capTokens',
    ],
    [
      { window: [] },
      'window: got [], allowed is a plain object with any of the fields givenTokens, givenOutputTokens, capTokens',
    ],
    [
      { window: new Map([['capTokens', 1]]) },
      'window: got an object, allowed is a plain object with any of the fields givenTokens, givenOutputTokens, capTokens',
    ],
  ])('%j', (overrides, message) => {
    expect(problemsOf(overrides)).toEqual([message])
  })

  it('is refused at the top level too', () => {
    const groups =
      'switches, window, ladder, shares, estimate, request, clear, compact, rehydrate, ledger, spill, history, notes, memoryFiles, cache, turn, dropIn'
    expect(problemsOf(null)).toEqual([
      `at the top: got null, allowed is a plain object with any of the fields ${groups}`,
    ])
  })

  it('is reported with all others in one error', () => {
    const overrides = { clear: { idle: { keep: -1 } }, notes: { toolCalls: 'x' }, cache: { tll: '5m' } }
    expect(errorOf(overrides)).toMatchObject({
      code: 'bad-policy',
      message: [
        'The policy has 3 problems:',
        '- clear.idle.keep: got -1, allowed is a whole number of 0 or more',
        '- notes.toolCalls: got "x", allowed is a whole number of 0 or more',
        '- cache.tll: no such field; did you mean cache.ttl?',
      ].join('\n'),
    })
    expect(errorOf(overrides).details.problems).toContainEqual({
      path: 'clear.idle.keep',
      given: '-1',
      allowed: 'a whole number of 0 or more',
      message: 'clear.idle.keep: got -1, allowed is a whole number of 0 or more',
    })
  })
})

describe('an unknown field', () => {
  it.each([
    [{ claer: {} }, 'claer: no such field; did you mean clear?'],
    [{ clear: { idle: { Keep: 5 } } }, 'clear.idle.Keep: no such field; did you mean clear.idle.keep?'],
    [
      { autoCompactEnabled: false },
      'autoCompactEnabled: no such field; did you mean switches.autoCompactEnabled?',
    ],
    [{ ttl: '5m' }, 'ttl: no such field; did you mean cache.ttl?'],
    [
      { 'clear.idle.keep': 5 },
      'clear.idle.keep: no such field; write it nested, as in { clear: { idle: { keep: … } } }',
    ],
    [
      { window: { somethingElse: 1 } },
      'window.somethingElse: no such field; known here are givenTokens, givenOutputTokens, capTokens',
    ],
    [
      { window: { constructor: 1 } },
      'window.constructor: no such field; known here are givenTokens, givenOutputTokens, capTokens',
    ],
    [
      JSON.parse('{"window":{"__proto__":{"capTokens":1}}}'),
      'window.__proto__: no such field; known here are givenTokens, givenOutputTokens, capTokens',
    ],
  ])('%j', (overrides, message) => {
    expect(problemsOf(overrides)).toEqual([message])
  })
})

describe('fields that contradict each other', () => {
  it.each([
    [
      { clear: { cached: { keep: 12 } } },
      'clear.cached.keep: got 12, allowed is less than clear.cached.fireAt, which is 12',
    ],
    [
      { clear: { native: { triggerTokens: 40_000 } } },
      'clear.native.keepTokens: got 40000, allowed is less than clear.native.triggerTokens, which is 40000',
    ],
    [
      { ladder: { blocking: { tokens: 13_000 } } },
      'ladder.blocking.tokens: got 13000, allowed is less than ladder.autoCompact.tokens, which is 13000',
    ],
    [
      { ladder: { blocking: { maximumPercent: 7 } } },
      'ladder.blocking.maximumPercent: got 7, allowed is less than ladder.autoCompact.maximumPercent, which is 6.5',
    ],
    [
      { ladder: { error: { tokens: 20_001 } } },
      'ladder.error.tokens: got 20001, allowed is at most ladder.warning.tokens, which is 20000',
    ],
    [
      { ladder: { error: { maximumPercent: 11 } } },
      'ladder.error.maximumPercent: got 11, allowed is at most ladder.warning.maximumPercent, which is 10',
    ],
    [
      { ladder: { reserve: { maximumPercent: 80 } } },
      'ladder.warning.maximumPercent: got 10, allowed is at most 3.5: with those of autoCompact and reserve no more than 90, so that a small window has room to work in',
    ],
    [
      { clear: { idle: { afterMinutes: 5 } } },
      `clear.idle.afterMinutes: got 5, allowed is 'ttl', or at least 60 while cache.ttl is 'auto': an hour's cache would still be warm`,
    ],
    [
      { spill: { thresholdTokens: 3_000 } },
      'spill.thresholdTokens: got 3000, allowed is more than spill.headTokens and spill.tailTokens together, which are 3000',
    ],
    [
      { request: { images: 50 } },
      'request.imagesInSmallWindow: got 100, allowed is at most request.images, which is 50',
    ],
    [
      { estimate: { highFactor: 1 } },
      'estimate.narrowestHighFactor: got 1.05, allowed is at most estimate.highFactor, which is 1',
    ],
    [
      { compact: { waiting: { stallSeconds: 601 } } },
      'compact.waiting.stallSeconds: got 601, allowed is at most compact.waiting.attemptSeconds, which is 600',
    ],
    [
      { compact: { waiting: { keepAliveSeconds: 600 } } },
      'compact.waiting.keepAliveSeconds: got 600, allowed is less than compact.waiting.attemptSeconds, which is 600',
    ],
    [
      { turn: { network: { firstDelayMs: 8_001 } } },
      'turn.network.firstDelayMs: got 8001, allowed is at most turn.network.maximumDelayMs, which is 8000',
    ],
    [
      { window: { givenTokens: 2_000 } },
      'window.givenTokens: got 2000, allowed is at least 2667, the smallest window this policy works in',
    ],
    [
      { window: { capTokens: 2_266, givenOutputTokens: 267 } },
      'window.capTokens: got 2266, allowed is at least 2267, the smallest window this policy works in',
    ],
  ])('%j', (overrides, message) => {
    expect(problemsOf(overrides)).toEqual([message])
  })

  it.each([
    { clear: { idle: { afterMinutes: 'ttl' } } },
    { clear: { idle: { afterMinutes: 5 } }, cache: { ttl: '5m' } },
    { clear: { idle: { afterMinutes: 5 } }, switches: { promptCachingEnabled: false } },
    { clear: { cached: { keep: 11 } } },
    { ladder: { warning: { tokens: 0 }, error: { tokens: 0 } } },
    { window: { capTokens: 2_267, givenOutputTokens: 267 } },
    { rehydrate: { files: { totalTokens: 0 } } },
  ])('%j agree', (overrides) => {
    expect(() => create(overrides)).not.toThrow()
  })

  it('do not check the smallest window while the thresholds are invalid', () => {
    expect(problemsOf({ ladder: { blocking: { tokens: 13_000 } }, window: { givenTokens: 1 } })).toEqual([
      'ladder.blocking.tokens: got 13000, allowed is less than ladder.autoCompact.tokens, which is 13000',
    ])
  })

  it('are not checked if one of them is already invalid', () => {
    expect(problemsOf({ clear: { cached: { keep: 40, fireAt: 'x' } } })).toEqual([
      'clear.cached.fireAt: got "x", allowed is a whole number of 1 or more',
    ])
    expect(problemsOf({ cache: 'on', clear: { idle: { afterMinutes: 5 } } })).toEqual([
      'cache: got "on", allowed is a plain object with any of the fields ttl, tailTtl, oneHourSources, fiveMinuteSources, volatile, idle, idleRequests, markers, breaks',
    ])
  })
})

describe('every field', () => {
  const leaves = policyFieldPaths.map((path) => {
    const node = path.split('.').reduce<FieldSpecTree[string]>((tree, key) => {
      const inner = isFieldSpec(tree) ? undefined : tree[key]
      if (inner === undefined) throw new Error(`no field ${path}`)
      return inner
    }, policyFields)
    if (!isFieldSpec(node)) throw new Error(`${path} is a group`)
    return { path, node }
  })

  it.each(leaves)('$path refuses an invalid value and names the field', ({ path, node }) => {
    expect(node.check.accepts(node.defaultValue)).toBe(true)
    for (const value of [Number.NaN, {}, () => 1, Symbol('x'), 10n, [1], -5, Number.POSITIVE_INFINITY]) {
      expect(problemsOf(at(path, value))).toHaveLength(1)
      expect(problemsOf(at(path, value))[0]).toContain(`${path}: got `)
    }
  })

  it('is either reported or in the policy: never a crash, never ignored', () => {
    const anyPath = fc.constantFrom(...policyFieldPaths)
    fc.assert(
      fc.property(anyPath, fc.anything(), (path, value) => {
        if (value === undefined) return
        const outcome = attempt(at(path, value))
        if ('policy' in outcome) expect(readPolicyValue(outcome.policy, path)).toEqual(value)
        else expect(outcome.error).toMatchObject({ code: 'bad-policy' })
      }),
      { numRuns: countPropertyRuns(2_000, 150) },
    )
  })
})

function attempt(overrides: unknown): { readonly policy: Policy } | { readonly error: unknown } {
  try {
    return { policy: create(overrides) }
  } catch (error) {
    return { error }
  }
}
