/** A summary that is prepared beside the turns: when it is written, swapped in and dropped, and what it costs. */
import { sampleCases } from '@tidemark/core/testing'
import type { Script } from '@tidemark/simulator'
import { anthropic, type ContextSource, type Journal, user } from 'tidemark'
import { createMemoryJournal } from 'tidemark/testing'
import { describe, expect, it } from 'vitest'
import { openLongSession } from './long-session.ts'

/** Long for a summary, and just within the time limit of a silent model. */
const SUMMARY_MS = 100_000

/** A session whose summary has just begun to be written. Its last turn has ended. */
async function openPreparing(options: Parameters<typeof openLongSession>[0] = {}) {
  const long = await openLongSession({ summaryMs: SUMMARY_MS, callMs: 1_000, ...options })
  await long.workUntil('summary-preparing')
  expect(long.session.status().preparedSummary).toBe('preparing')
  return long
}

/** A session whose summary is ready, at rest. */
async function openPrepared(options: Parameters<typeof openLongSession>[0] = {}) {
  const long = await openPreparing(options)
  await long.wait(SUMMARY_MS)
  expect(long.session.status().preparedSummary).toBe('ready')
  return long
}

describe('a summary prepared in the background', () => {
  it('begins at the warning threshold, is announced with its price, and changes nothing until it is swapped in', async () => {
    const long = await openPreparing()
    const [begun] = long.list('summary-preparing')
    const { lines } = long.session.contextRemaining()
    expect(begun?.tokens).toBeGreaterThan(0.75 * (lines?.warning ?? Number.NaN))
    expect(begun?.price).toBeGreaterThan(0)
    const messages = JSON.stringify(long.session.messages())
    await long.wait(SUMMARY_MS)
    expect(JSON.stringify(long.session.messages())).toBe(messages)
    const [ready] = long.list('summary-prepared')
    expect(ready?.price).toBeGreaterThan(0)
    expect(ready?.tokensAfter).toBeLessThan(begun?.tokens ?? 0)
    const [fork] = long.list('fork')
    expect(fork?.fork.share).toBeGreaterThan(0.9)
  })

  it('is swapped in without a wait at the auto-compact threshold, and can be undone', async () => {
    const long = await openPrepared()
    const before = long.list('summary-prepared')[0]?.tokensBefore ?? 0
    await long.workUntil('compact')
    const [{ compaction } = { compaction: null }] = long.list('compact')
    expect(compaction).toMatchObject({ trigger: 'auto', summarizer: 'model', fallbackReason: null })
    expect(['threshold', 'prepared']).toContain(compaction?.cause)
    // Its size before is that of the swap, not that of the plan.
    expect(compaction?.tokensBefore).toBeGreaterThan(before)
    expect(long.readFigures().blockedSeconds).toBe(0)
    expect(long.session.status().preparedSummary).toBe('none')
    expect(await long.session.undo()).toMatchObject({ ok: true, kind: 'compact' })
  })

  it.each([
    ['', false],
    [', if a change was appended meanwhile', true],
  ])(
    'is swapped in with files as they are then, not as they were when it was written%s',
    async (_, tellsChanges) => {
      const shown = { text: 'VERSION 1' }
      const long = await openPrepared({ given: { carriers: [createFileCarrier(shown, tellsChanges)] } })
      expect(long.list('context-restored')).toEqual([])
      shown.text = 'VERSION 2'
      long.session.on('phase', ({ phase }) => {
        if (phase === 'bringing back context') shown.text = 'VERSION 3'
      })
      await long.wait(3_600_000)
      await long.workUntil('compact')
      const messages = JSON.stringify(long.session.messages())
      expect(messages.match(/VERSION ./g)).toEqual(['VERSION 3'])
      expect(long.list('context-restored')).toHaveLength(1)
      const [{ compaction } = { compaction: null }] = long.list('compact')
      expect(compaction?.usage.calls).toBe(1)
      expect(long.list('side-sent')).toHaveLength(1)
    },
  )

  it('leaves the context alone at the end of a turn while the next turn still fits', async () => {
    const long = await openPrepared({ turns: 1 })
    expect(long.list('compact')).toEqual([])
    await long.work()
    expect(long.list('compact')).toEqual([])
  })

  it('does not hold up the turn between the auto-compact and the blocking threshold', async () => {
    const long = await openLongSession({ callMs: 4_000, summaryMs: 38_000, turns: 40 })
    await long.workUntil('compact')
    const { blockedSeconds } = long.readFigures()
    expect(blockedSeconds).toBe(0)
    const lines = long.session.contextRemaining().lines
    const before = long.list('compact')[0]?.compaction.tokensBefore
    expect(before).toBeGreaterThan(lines?.autoCompact ?? Number.NaN)
    expect(before).toBeLessThan(lines?.blocking ?? Number.NaN)
    expect(long.list('summary-dropped')).toEqual([])
  })

  it('is waited for at the blocking threshold, and not begun anew', async () => {
    const long = await openLongSession({ summaryMs: SUMMARY_MS, callMs: 100, turns: 60 })
    await long.workUntil('compact')
    expect(long.list('summary-preparing')).toHaveLength(1)
    expect(long.list('side-sent')).toHaveLength(1)
    expect(long.readFigures().blockedSeconds).toBeGreaterThan(90)
    expect(long.list('compact')[0]?.compaction.summarizer).toBe('model')
  })

  it.each([
    ['a compaction by hand', 'rewritten', (long: Long) => long.pass(long.session.compact())],
    ['a rewind', 'rewritten', async (long: Long) => long.session.rewind(await newestPrompt(long))],
    ['a new conversation', 'rewritten', (long: Long) => long.session.clear()],
    ['another model', 'model-switched', (long: Long) => long.session.switchModel(other())],
    ['a pin', 'pinned', async (long: Long) => long.session.pin(await newestPrompt(long, 2))],
  ] as const)('is dropped after %s, with why and what it cost', async (_, why, act) => {
    for (const open of sampleCases([openPrepared, openPreparing], 1)) {
      const long = await open()
      const spent = long.session.money().spent.total ?? 0
      expect(await act(long)).toMatchObject({ ok: true })
      await long.wait(1_000)
      const dropped = long.list('summary-dropped')
      expect(dropped.map((event) => event.why)).toEqual([why])
      expect(long.session.status().preparedSummary).toBe('none')
      if (open !== openPrepared) continue
      expect(dropped[0]?.price).toBe(long.list('summary-prepared')[0]?.price)
      expect(spent).toBeGreaterThan(dropped[0]?.price ?? 0)
    }
  })

  it('that fails is not tried again at every response, and counts as a failed compaction', async () => {
    const refusing: Script = () => {
      throw new Error('no summaries today')
    }
    const long = await openLongSession({
      summarizer: refusing,
      summaryMs: 1_000,
      turns: 60,
      policy: { compact: { chain: { local: 'never' } }, turn: { network: { retries: 0 } } },
    })
    await long.pass(long.session.run('Fix everything.', { maxCalls: 80 }).outcome)
    expect(long.list('summary-preparing')).toHaveLength(1)
    expect(long.list('summary-dropped')).toMatchObject([{ why: 'failed' }])
    // One failure in the background and two in the turn are three.
    expect(long.list('breaker-open')).toMatchObject([{ failures: 3 }])
    expect(long.list('compact-failed')).toHaveLength(2)
  })

  it('that was paid for is dropped with its price where the disk fails during the swap', async () => {
    const long = await openPrepared({ given: { journal: createFailingJournal() } })
    await expect(long.workUntil('compact')).rejects.toThrow('the disk is gone')
    const { price } = long.list('summary-prepared')[0] ?? {}
    expect(long.list('summary-dropped')).toMatchObject([
      { why: 'failed', message: 'journal: read() failed: the disk is gone', price },
    ])
    expect(price).toBeGreaterThan(0)
    expect(long.session.status().preparedSummary).toBe('none')
  })

  it('that no model wrote is not taken from the local extractor, which is the last resort', async () => {
    const empty: Script = () => ({ blocks: [{ type: 'text', text: '' }] })
    const long = await openLongSession({ summarizer: empty, summaryMs: 1_000, turns: 30 })
    await long.workUntil('compact')
    expect(long.list('summary-dropped')[0]).toMatchObject({ why: 'no-summary' })
    expect(long.list('compact')[0]?.compaction).toMatchObject({ summarizer: 'local', cause: 'threshold' })
  })

  it('is not written where a hook blocks it, and the hook is asked once for each prompt', async () => {
    let asked = 0
    const hooks = {
      preCompact: [
        {
          name: 'guard',
          run: async () => {
            asked += 1
            return { block: 'not now' }
          },
        },
      ],
    }
    const long = await openLongSession({ given: { hooks }, turns: 3 })
    await long.workUntil('summary-dropped')
    expect(long.list('summary-dropped')[0]).toMatchObject({ why: 'blocked', price: 0 })
    expect([asked, long.list('side-sent').length, long.list('breaker-open').length]).toEqual([1, 0, 0])
  })

  it('is stopped when the session is closed, and what is left can be opened', async () => {
    const long = await openPreparing()
    await long.pass(long.session.close())
    expect(long.list('summary-dropped')).toMatchObject([{ why: 'closed' }])
    const again = await openLongSession({ store: long.store })
    expect(again.session.damage).toEqual([])
    await again.work()
  })

  it('is not written where policy turns it off', async () => {
    const long = await openLongSession({ background: false })
    await long.workUntil('compact')
    expect([long.list('summary-preparing').length, long.session.status().preparedSummary]).toEqual([
      0,
      'none',
    ])
  })

  it('is swapped in for a loop of one’s own, too', async () => {
    const long = await openPrepared()
    let number = 0
    while (long.list('compact').length === 0) {
      number += 1
      await long.session.append(user(`Own prompt ${number}. ${'word '.repeat(300)}`))
      const request = await long.session.next()
      if (!request.ok) throw new Error(request.message)
      await long.session.append({
        id: `msg_own_${number}`,
        role: 'assistant',
        content: [{ type: 'text', text: 'Yes.' }],
        stop_reason: 'end_turn',
        usage: { input_tokens: request.context.expected, output_tokens: 3 },
      })
    }
    expect(long.list('side-sent')).toHaveLength(1)
  })
})

describe('with policy economy', () => {
  it('a compaction that saves money is made only with a prepared summary, above half of the threshold, for its price', async () => {
    const long = await openLongSession({
      summaryMs: 1_000,
      policy: { compact: { economy: true } },
      turns: 2,
      window: 60_000,
    })
    await long.workUntil('compact')
    const [{ compaction } = { compaction: null }] = long.list('compact')
    const autoCompact = long.session.contextRemaining().lines?.autoCompact ?? Number.NaN
    expect(compaction).toMatchObject({ cause: 'price', firedBy: 'price' })
    expect(compaction?.tokensBefore).toBeGreaterThanOrEqual(autoCompact / 2)
    expect(compaction?.tokensBefore).toBeLessThan(autoCompact)
    expect(long.list('summary-prepared')).toHaveLength(1)
  })

  it('off, price only advises', async () => {
    const long = await openLongSession({ summaryMs: 1_000, turns: 2, window: 60_000 })
    await long.workUntil('compact')
    expect(long.list('compaction-advised').length).toBeGreaterThan(0)
    expect(long.list('compact')[0]?.compaction.cause).not.toBe('price')
  })
})

type Long = Awaited<ReturnType<typeof openLongSession>>

async function newestPrompt(long: Long, back = 1): Promise<string> {
  const prompts = long
    .list('appended')
    .flatMap(({ records }) => records)
    .filter((record) => record.type === 'user' && JSON.stringify(record).includes('fix the next test'))
  return prompts.at(-back)?.uuid ?? ''
}

/** A context source with one file, whose text may change at any time. */
function createFileCarrier(shown: { readonly text: string }, tellsChanges: boolean): ContextSource {
  return {
    name: 'board',
    kind: 'files',
    tellsChanges,
    isWhole: true,
    limit: () => null,
    async *render() {
      yield { id: 'login.ts', attachment: { type: 'file', content: shown.text }, source: 'host' }
    },
  }
}

/** A journal that cannot be read any more once a compaction is to be appended, while another process seems to write. */
function createFailingJournal(): Journal {
  const journal = createMemoryJournal()
  let isGone = false
  return {
    ...journal,
    async read(...input) {
      if (isGone) throw new Error('the disk is gone')
      return journal.read(...input)
    },
    async append(session, after, records) {
      isGone ||= records.some((record) => 'compactMetadata' in record)
      return isGone
        ? { ok: false, reason: 'conflict', position: after + 1 }
        : journal.append(session, after, records)
    },
  }
}

function other() {
  return anthropic('claude-opus-4-5', { apiKey: 'any', window: 24_000, maxOutput: 6_000 })
}

describe('a summary is not begun', () => {
  it('while the cache is expired: the next request writes the cache first, and the summary reads it', async () => {
    const long = await openLongSession({ turns: 1, summaryMs: 1_000 })
    while (
      (long.session.contextRemaining().high ?? 0) <
      (long.session.contextRemaining().lines?.warning ?? 0) - 300
    )
      await long.work()
    await long.wait(7_200_000)
    await long.workUntil('summary-prepared')
    expect(long.list('fork')[0]?.fork.share).toBeGreaterThan(0.8)
    expect(long.list('side-sent')).toHaveLength(1)
  })
})

describe('on a model whose provider clears old tool results', () => {
  const DEFAULTS = { modelId: 'claude-sonnet-5-5', turns: 40, given: { env: {} } }

  it('with the default policy, every prepared summary is used, and no turn waits for one', async () => {
    const long = await openLongSession({ ...DEFAULTS, window: 30_000, resultTokens: 1_500, textTokens: 300 })
    for (let tried = 0; tried < 20 && long.list('compact').length < 4; tried += 1) await long.work()
    expect(long.list('summary-dropped')).toEqual([])
    expect(long.list('microcompact').length).toBeGreaterThan(0)
    expect(long.list('compact').length).toBeGreaterThanOrEqual(4)
    expect(long.list('summary-prepared').length - long.list('compact').length).toBeLessThanOrEqual(1)
    expect(long.readFigures().blockedSeconds).toBe(0)
    // What the provider cleared is not counted for the context before the swap and against the context after it.
    for (const { compaction } of long.list('compact'))
      expect(compaction.tokensAfter).toBeLessThan(0.7 * compaction.tokensBefore)
  })

  it('no summary is paid for while its clearings keep the context below the warning threshold', async () => {
    const long = await openLongSession({ ...DEFAULTS, window: 30_000, resultTokens: 1_500 })
    for (let prompt = 0; prompt < 2; prompt += 1) await long.work()
    expect(long.list('microcompact').length).toBeGreaterThan(1)
    expect([long.list('summary-preparing').length, long.list('compact').length]).toEqual([0, 0])
  })
})
