/** Rewrites of every kind one after the other, with turns between them and state that changes. */

import { compact } from '@tidemark/core/compaction/compact'
import type { CompactionOptions } from '@tidemark/core/compaction/plan-compaction'
import { toApiMessages } from '@tidemark/core/context/flatten-context'
import type { TurnHost } from '@tidemark/core/engine/host'
import { readSessionState, type SessionState } from '@tidemark/core/engine/session-state'
import type { TurnContext } from '@tidemark/core/engine/session-writer'
import { createCountingIds, createFakeClock, runSingleTurn, runToEnd } from '@tidemark/core/testing'
import { createMemoryJournal, type MemoryStore } from 'tidemark/testing'
import { expect } from 'vitest'
import { appendUserMessage, findPrompt } from './interruptible-acts.ts'
import {
  buildBody,
  clearSession,
  MANUAL,
  nextBody,
  openRun,
  pinRecordOf,
  undoSession,
} from './rewrite-acts.ts'
import { createOutsideState, createRewriteHost, type OutsideState, SESSION } from './rewrite-host.ts'

export type Rewrite = 'full' | 'from' | 'up_to' | 'clear'

export interface RewriteSnapshot {
  /** The log right after the rewrite. */
  readonly lines: readonly string[]
  /** The request body before the rewrite, and the records it showed. */
  readonly body: string
  readonly shown: readonly string[]
}

export class RewriteChain {
  readonly store: MemoryStore = new Map()
  readonly state: OutsideState = createOutsideState()
  readonly clock = createFakeClock()
  readonly ids = createCountingIds()
  readonly host: TurnHost
  readonly rewritten: RewriteSnapshot[] = []
  readonly pinned: string[] = []
  #prompts = 0

  constructor() {
    this.host = this.#hostOn(this.store)
  }

  #hostOn(store: MemoryStore): TurnHost {
    return createRewriteHost({
      journal: createMemoryJournal(store),
      state: this.state,
      clock: this.clock,
      ids: this.ids,
    })
  }

  /** Three turns, sometimes a pin, an unanswered message, then the rewrite. */
  async step(kind: Rewrite): Promise<void> {
    const number = this.rewritten.length
    this.#worldMoves(kind, number)
    for (let turn = 0; turn < 3; turn += 1) await this.#turn()
    if (number % 6 === 1) await this.#pin()
    const unanswered = `Unanswered ${number}:  "and\tthen"?\n`
    await appendUserMessage(this.host, unanswered)
    const before = await readSessionState(this.host.journal, SESSION)
    const { body } = await nextBody(this.host)
    const after = kind === 'clear' ? await this.#clear() : await this.#compact(kind)
    this.rewritten.push({ lines: [...this.#lines()], body, shown: listUuids(before) })
    await this.#check(after, unanswered)
    if (kind !== 'clear') this.#checkCopies(after)
  }

  #worldMoves(kind: Rewrite, number: number): void {
    const { state } = this
    state.todos = [...state.todos.slice(0, 3), { content: `step <${number}> & more`, status: 'pending' }]
    if (kind === 'clear') return
    state.plan = `# Plan, version ${number}\n\n- go on  \n`
    state.agents = [{ id: `agent-${number}`, purpose: 'reads "along"', status: 'running' }]
  }

  async #turn(): Promise<void> {
    this.#prompts += 1
    const state = await readSessionState(this.host.journal, SESSION)
    const end = await runToEnd(
      runSingleTurn(state, { prompt: `Prompt ${this.#prompts}: read on.` }, this.host),
    )
    expect(end).toMatchObject({ ok: true })
  }

  /** Pins the newest prompt, which a summary would repeat anyway, and the newest result, which it would not. */
  async #pin(): Promise<void> {
    const { session } = await readSessionState(this.host.journal, SESSION)
    const said = [...session.records].filter((record) => record.type === 'user').slice(-2)
    for (const record of said) {
      await pinRecordOf(this.host, record.uuid ?? '')
      this.pinned.push(JSON.stringify(record))
    }
  }

  async #clear(): Promise<SessionState> {
    await clearSession(this.host)
    return readSessionState(this.host.journal, SESSION)
  }

  async #compact(form: Exclude<Rewrite, 'clear'>): Promise<SessionState> {
    const run: TurnContext = await openRun(this.host)
    const asked: CompactionOptions =
      form === 'full'
        ? MANUAL
        : { ...MANUAL, form, pivot: await findPrompt(this.host, `Prompt ${this.#prompts}:`) }
    const end = await runToEnd(compact(run, asked))
    expect(end).toMatchObject({ ok: true })
    return run.state
  }

  /** What must last is in the request once, byte for byte, and the log alone gives the same request. */
  async #check(state: SessionState, unanswered: string): Promise<void> {
    const { body, findings } = await nextBody(this.host)
    expect(findings).toEqual([])
    expect(buildBody(this.host, state).body).toBe(body)
    const whole = [...state.view.entries].flatMap(({ record, cleared }) =>
      cleared ? [] : [JSON.stringify(record)],
    )
    expect(this.pinned.map((pin) => whole.filter((record) => record === pin).length)).toEqual(
      this.pinned.map(() => 1),
    )
    for (const [what, text] of this.#lasting(unanswered))
      expect([what, body.split(JSON.stringify(text).slice(1, -1)).length - 1]).toEqual([what, 1])
    expect(
      JSON.stringify(toApiMessages(state.flat).at(-1)).includes(JSON.stringify(unanswered).slice(1, -1)),
    ).toBe(true)
  }

  /** No outdated copy of carried state is shown. */
  #checkCopies({ view }: SessionState): void {
    const shown = [...view.entries].flatMap(({ record }) =>
      record.type === 'attachment' ? [record.attachment.type] : [],
    )
    const carried = ['nested_memory', 'todo', 'plan_file_reference', 'task_status']
    expect(shown.filter((type) => carried.includes(String(type))).toSorted()).toEqual(carried.toSorted())
  }

  #lasting(unanswered: string): readonly (readonly [string, string])[] {
    const { standing, plan, todos, agents } = this.state
    return [
      ['standing instructions', standing],
      ['plan', plan],
      ['todos', todos.map(({ content, status }) => `[${status}] ${content}`).join('\n')],
      ['agent', `${agents[0]?.id} (running): ${agents[0]?.purpose}`],
      ['unanswered prompt', unanswered],
    ]
  }

  #lines(): readonly string[] {
    return this.store.get(SESSION)?.lines ?? []
  }

  /** Undoes each rewrite on the log as it was right after it. */
  async undoEach(): Promise<void> {
    for (const { lines, body } of this.rewritten) {
      const host = this.#hostOn(new Map([[SESSION, { lines: [...lines], holder: null }]]))
      expect(await undoSession(host)).toMatchObject({ ok: true })
      expect(await nextBody(host)).toEqual({ body, findings: [] })
    }
  }

  /** Undoes all rewrites, newest first: the records before each are shown again, with later ones after them. */
  async undoAll(): Promise<void> {
    for (const { shown } of this.rewritten.toReversed()) {
      expect(await undoSession(this.host)).toMatchObject({ ok: true })
      const state = await readSessionState(this.host.journal, SESSION)
      expect(listUuids(state).slice(0, shown.length)).toEqual(shown)
      expect((await nextBody(this.host)).findings).toEqual([])
    }
    expect(await undoSession(this.host)).toMatchObject({ ok: false, reason: 'nothing-to-undo' })
    const { view } = await readSessionState(this.host.journal, SESSION)
    const said = [...view.entries].filter(({ record }) =>
      JSON.stringify(record).includes('"content":"Prompt '),
    )
    expect(said).toHaveLength(this.#prompts)
    expect([...view.entries].filter(({ cleared }) => cleared !== undefined)).toEqual([])
  }
}

function listUuids({ view }: SessionState): readonly string[] {
  return [...view.entries].map(({ record }) => record.uuid)
}
