/** Two writers on one session who know nothing of each other, each perhaps with a compaction in hand. */
import {
  type Committed,
  type CompactionDraft,
  commitCompaction,
  planCompaction,
  prepareCompaction,
  type TurnRun,
} from '@tidemark/core'
import { createCountingIds, createFakeClock, readAll } from '@tidemark/core/testing'
import fc from 'fast-check'
import type { MemoryStore } from 'tidemark/testing'
import { expect } from 'vitest'
import {
  clearOnce,
  compactOnce,
  endOf,
  MANUAL,
  nextBody,
  opened,
  promptOnce,
  undoOnce,
} from './session-work.ts'
import { unlockedJournal } from './shared-journal.ts'
import { say } from './started-sessions.ts'
import { SESSION, type WorkHost, workHost } from './work-host.ts'

export interface Writers {
  readonly one: WorkHost
  readonly other: WorkHost
}

export function writers(journalOf: (store: MemoryStore) => WorkHost['journal'] = unlockedJournal): Writers {
  const store: MemoryStore = new Map()
  const given = { clock: createFakeClock(), ids: createCountingIds() }
  return {
    one: workHost({ ...given, journal: journalOf(store) }),
    other: workHost({ ...given, journal: journalOf(store) }),
  }
}

/** Ready to be committed, on the session as it was when it was planned. */
export interface Prepared {
  readonly run: TurnRun
  readonly draft: CompactionDraft
}

export async function prepared(host: WorkHost): Promise<Prepared> {
  const run = await opened(host)
  const plan = planCompaction(run.state, MANUAL, { host, room: host.room })
  if (!plan.ok) throw new Error(plan.message)
  const draft = await endOf(prepareCompaction(run, host.room, plan))
  if (!draft.ok) throw new Error(draft.message)
  return { run, draft }
}

export function commit(host: WorkHost, { run, draft }: Prepared): Promise<Committed> {
  return endOf(commitCompaction(run, host.room, draft))
}

export async function logOf({ journal }: WorkHost): Promise<string> {
  return JSON.stringify((await readAll(journal, SESSION)).records)
}

export type Step = 'say' | 'prompt' | 'compact' | 'clear' | 'undo' | 'prepare' | 'commit'

export const step: fc.Arbitrary<readonly [Step, boolean]> = fc.tuple(
  fc.constantFrom<Step>(
    'say',
    'prompt',
    'compact',
    'clear',
    'undo',
    'prepare',
    'prepare',
    'commit',
    'commit',
  ),
  fc.boolean(),
)

/** Without these the law would be proved on nothing. */
export const MUST_BE_MET: [(readonly [Step, boolean])[]][] = [
  [
    [
      ['prepare', false],
      ['say', true],
      ['commit', false],
    ],
  ],
  [
    [
      ['prepare', false],
      ['compact', true],
      ['commit', false],
    ],
  ],
  [
    [
      ['clear', false],
      ['prompt', true],
      ['undo', true],
    ],
  ],
]

export const met: Record<string, number> = {}

/** Two writers at work, and what must be true of what they leave. */
export class Struggle {
  readonly writers: Writers = writers()
  readonly ready = new Map<WorkHost, { readonly prepared: Prepared; readonly rewrites: number }>()
  readonly said: string[] = []
  rewrites = 0

  async take([step, isOther]: readonly [Step, boolean]): Promise<void> {
    const host = isOther ? this.writers.other : this.writers.one
    const outcome = await this.#do(step, host)
    met[`${step} ${outcome}`] = (met[`${step} ${outcome}`] ?? 0) + 1
  }

  async #do(step: Step, host: WorkHost): Promise<string> {
    switch (step) {
      case 'say':
      case 'prompt': {
        const text = `Said as number ${this.said.length}.`
        this.said.push(text)
        await (step === 'say' ? say(host, text) : promptOnce(host, text))
        return 'ok'
      }
      case 'compact':
        return this.#rewritten(await compactOnce(host))
      case 'undo':
        return this.#rewritten(await undoOnce(host))
      case 'clear':
        return clearOnce(host).then(
          () => this.#rewritten({ ok: true }),
          () => 'nothing',
        )
      case 'prepare': {
        const ready = await prepared(host).catch(() => null)
        if (ready !== null) this.ready.set(host, { prepared: ready, rewrites: this.rewrites })
        return ready === null ? 'refused' : 'ok'
      }
      case 'commit':
        return this.#commit(host)
    }
  }

  #rewritten(end: { readonly ok: boolean; readonly reason?: string }): string {
    if (end.ok) this.rewrites += 1
    return end.reason ?? 'ok'
  }

  async #commit(host: WorkHost): Promise<string> {
    const ready = this.ready.get(host)
    if (ready === undefined) return 'nothing'
    this.ready.delete(host)
    const log = await logOf(host)
    const end = await commit(host, ready.prepared)
    if (ready.rewrites !== this.rewrites) expect(end).toMatchObject({ ok: false, reason: 'superseded' })
    if (!end.ok) expect(await logOf(host)).toBe(log)
    return this.#rewritten(end)
  }

  /** Every word is in the log once, in order, and in the next request, if only by its summary. */
  async check(): Promise<void> {
    const { one, other } = this.writers
    const log = await logOf(one)
    const places = this.said.map(
      (text) => [log.split(`"content":"${text}"`).length - 1, log.indexOf(text)] as const,
    )
    expect(places.map(([count]) => count)).toEqual(this.said.map(() => 1))
    expect(places.map(([, place]) => place)).toEqual(
      places.map(([, place]) => place).toSorted((a, b) => a - b),
    )
    const { body } = await nextBody(one)
    expect(await nextBody(other)).toMatchObject({ body })
    for (const text of this.said) expect(body.split(text).length - 1, `${text} in ${body}`).toBe(1)
  }
}
