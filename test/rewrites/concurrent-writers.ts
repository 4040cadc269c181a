/** Two writers on one session that do not know of each other; each may hold a prepared compaction. */

import { type CompactionResult, commitReviewedDraft } from '@tidemark/core/compaction/commit-draft'
import type { CompactionDraft } from '@tidemark/core/compaction/draft'
import { planCompaction } from '@tidemark/core/compaction/plan-compaction'
import { prepareDraftForReview } from '@tidemark/core/compaction/prepare-draft'
import type { TurnHost } from '@tidemark/core/engine/host'
import type { TurnContext } from '@tidemark/core/engine/session-writer'
import { createCountingIds, createFakeClock, readAllRecords, runToEnd } from '@tidemark/core/testing'
import fc from 'fast-check'
import type { MemoryStore } from 'tidemark/testing'
import { expect } from 'vitest'
import { appendUserMessage } from './interruptible-acts.ts'
import {
  clearSession,
  compactSession,
  MANUAL,
  nextBody,
  openRun,
  promptSession,
  undoSession,
} from './rewrite-acts.ts'
import { createRewriteHost, SESSION } from './rewrite-host.ts'
import { createUnlockedJournal } from './scheduled-session.ts'

export interface Writers {
  readonly one: TurnHost
  readonly other: TurnHost
}

export function createWriters(
  journalOf: (store: MemoryStore) => TurnHost['journal'] = createUnlockedJournal,
): Writers {
  const store: MemoryStore = new Map()
  const given = { clock: createFakeClock(), ids: createCountingIds() }
  return {
    one: createRewriteHost({ ...given, journal: journalOf(store) }),
    other: createRewriteHost({ ...given, journal: journalOf(store) }),
  }
}

/** A draft ready to commit, with the state it was planned on. */
export interface PreparedDraft {
  readonly run: TurnContext
  readonly draft: CompactionDraft
}

export async function prepareDraft(host: TurnHost): Promise<PreparedDraft> {
  const run = await openRun(host)
  const plan = planCompaction(run.state, MANUAL, host)
  if (!plan.ok) throw new Error(plan.message)
  const draft = await runToEnd(prepareDraftForReview(run, plan))
  if (!draft.ok) throw new Error(draft.message)
  return { run, draft }
}

export function commitDraft({ run, draft }: PreparedDraft): Promise<CompactionResult> {
  return runToEnd(commitReviewedDraft(run, draft))
}

export async function readLog({ journal }: TurnHost): Promise<string> {
  return JSON.stringify((await readAllRecords(journal, SESSION)).records)
}

export type WriterStep = 'say' | 'prompt' | 'compact' | 'clear' | 'undo' | 'prepare' | 'commit'

export const writerSteps: fc.Arbitrary<readonly [WriterStep, boolean]> = fc.tuple(
  fc.constantFrom<WriterStep>(
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

/** Sequences that every run includes, so that each outcome comes up. */
export const REQUIRED_SEQUENCES: [(readonly [WriterStep, boolean])[]][] = [
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

export const outcomeCounts: Record<string, number> = {}

/** Runs steps of two writers and checks the log they leave. */
export class TwoWriters {
  readonly writers: Writers = createWriters()
  readonly ready = new Map<TurnHost, { readonly prepared: PreparedDraft; readonly rewrites: number }>()
  readonly said: string[] = []
  rewrites = 0

  async take([step, isOther]: readonly [WriterStep, boolean]): Promise<void> {
    const host = isOther ? this.writers.other : this.writers.one
    const outcome = await this.#do(step, host)
    outcomeCounts[`${step} ${outcome}`] = (outcomeCounts[`${step} ${outcome}`] ?? 0) + 1
  }

  async #do(step: WriterStep, host: TurnHost): Promise<string> {
    switch (step) {
      case 'say':
      case 'prompt': {
        const text = `Said as number ${this.said.length}.`
        this.said.push(text)
        await (step === 'say' ? appendUserMessage(host, text) : promptSession(host, text))
        return 'ok'
      }
      case 'compact':
        return this.#rewritten(await compactSession(host))
      case 'undo':
        return this.#rewritten(await undoSession(host))
      case 'clear':
        return clearSession(host).then(
          () => this.#rewritten({ ok: true }),
          () => 'nothing',
        )
      case 'prepare': {
        const ready = await prepareDraft(host).catch(() => null)
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

  async #commit(host: TurnHost): Promise<string> {
    const ready = this.ready.get(host)
    if (ready === undefined) return 'nothing'
    this.ready.delete(host)
    const log = await readLog(host)
    const end = await commitDraft(ready.prepared)
    if (ready.rewrites !== this.rewrites) expect(end).toMatchObject({ ok: false, reason: 'superseded' })
    if (!end.ok) expect(await readLog(host)).toBe(log)
    return this.#rewritten(end)
  }

  /** Every message is in the log once and in order, and in the next request, verbatim or in the summary. */
  async check(): Promise<void> {
    const { one, other } = this.writers
    const log = await readLog(one)
    const places = this.said.map(
      (text) => [log.split(`"content":"${text}"`).length - 1, log.indexOf(text)] as const,
    )
    expect(places.map(([count]) => count)).toEqual(this.said.map(() => 1))
    expect(places.map(([, place]) => place)).toEqual(
      places.map(([, place]) => place).toSorted((a, b) => a - b),
    )
    const { body } = await nextBody(one)
    expect(await nextBody(other)).toMatchObject({ body })
    const lines = listTextLines(body)
    for (const text of this.said)
      expect(lines.filter((line) => isMessageLine(line, text)).length, `${text} in ${body}`).toBe(1)
  }
}

function listTextLines(body: string): readonly string[] {
  const { messages } = JSON.parse(body) as { readonly messages: readonly { readonly content: unknown }[] }
  return messages
    .flatMap(({ content }) => (Array.isArray(content) ? content.map(({ text }) => text) : [content]))
    .flatMap((text) => (typeof text === 'string' ? text.split('\n') : []))
}

/** A line that is the message itself, or its entry in the list of the summary; other sections may quote it too. */
function isMessageLine(line: string, text: string): boolean {
  return line === text || (/^\[\d+\] /.test(line) && line.endsWith(text))
}
