/**
 * A session in which nothing breaks: turns of every kind, gaps shorter than the lifetime, the engine's own acts
 * announced, calls that fail and are sent again, forks, agents, rewinds. Whatever it does, there is no break in it.
 */
import type { CacheCheckOutcome } from '../../src/cache/cache-monitor.ts'
import { isToolResult } from '../../src/log/block.ts'
import {
  FIVE_MINUTES,
  type Lifetime,
  ONE_HOUR,
  prompted,
  requestOf,
  responded,
  rounded,
  SILENCE,
  type Talk,
  TEXT,
  told,
} from './talk.ts'
import { createWatcher, type Watcher } from './watcher.ts'

export type Step =
  | { readonly do: 'round'; readonly calls: number; readonly size: number; readonly thinking: boolean }
  | { readonly do: 'prompt' | 'delta'; readonly size: number }
  | { readonly do: 'clear'; readonly results: number }
  | { readonly do: 'rewind'; readonly back: number }
  | { readonly do: 'agent'; readonly which: number; readonly size: number }
  | { readonly do: 'fork' }
  | { readonly do: 'compact' | 'fail' }

export interface TimedStep {
  readonly step: Step
  /** As a share of the lifetime; below 1. */
  readonly gap: number
}

const MAIN = 'repl_main_thread'

export class CleanSession {
  readonly #watcher: Watcher = createWatcher()
  readonly #lifetime: Lifetime
  readonly #agents = new Map<number, { readonly talk: Talk; readonly at: number }>()
  #past: readonly Talk[] = [prompted(SILENCE, 'begin')]
  #now = 0
  turns = 0

  constructor(isHour: boolean) {
    this.#lifetime = isHour ? ONE_HOUR : FIVE_MINUTES
  }

  take({ step, gap }: TimedStep): CacheCheckOutcome {
    if (step.do === 'agent') return this.#agent(step.which, step.size)
    const talk = this.#past.at(-1) ?? SILENCE
    if (step.do === 'fork') return this.#send(prompted(talk, 'sum it up'), 'compact')
    this.#now += Math.floor(gap * this.#lifetime.seconds * 1000)
    return this.#goOn(this.#next(talk, step))
  }

  #next(talk: Talk, step: Exclude<Step, { readonly do: 'agent' | 'fork' }>): Talk {
    switch (step.do) {
      case 'round':
        return rounded(talk, step.calls, words(step.size), step.thinking ? words(200) : '')
      case 'prompt':
        return prompted(closed(talk), words(step.size))
      case 'delta':
        return told(talk, {
          type: 'attachment',
          attachment: { type: 'section_delta', content: words(step.size) },
        })
      case 'clear':
        this.#watcher.announce(MAIN, { kind: 'clearing', act: 'cleared results', freedTokens: 1_000 })
        return cleared(talk, step.results)
      case 'compact':
        this.#watcher.announce(MAIN, { kind: 'compaction' })
        this.#past = []
        return compacted(talk)
      case 'rewind':
        return this.#rewind(talk, this.#past.at(-1 - step.back) ?? talk)
      case 'fail':
        this.#watcher.record(requestOf(prompted(talk, 'lost'), this.#now, this.#lifetime))
        return talk
    }
  }

  /** Whoever goes back behind a clearing takes it back, or brings it back, and says so. */
  #rewind(from: Talk, to: Talk): Talk {
    if (from.view.rewrites.at(-1)?.uuid !== to.view.rewrites.at(-1)?.uuid)
      this.#watcher.announce(MAIN, { kind: 'undo' })
    return prompted({ ...to, ids: `turn${this.turns}-` }, words(300))
  }

  /** One that has not been heard of for as long as its cache lives begins anew, and says so. */
  #agent(which: number, size: number): CacheCheckOutcome {
    const source = `agent:${which}`
    const known = this.#agents.get(which)
    const isAlive = known !== undefined && this.#now - known.at < this.#lifetime.seconds * 1000
    if (known !== undefined && !isAlive) this.#watcher.announce(source, { kind: 'restart' })
    const talk = rounded(isAlive ? known.talk : prompted(SILENCE, 'help'), 1, words(size))
    this.#agents.set(which, { talk, at: this.#now })
    return this.#send(talk, source)
  }

  #goOn(talk: Talk): CacheCheckOutcome {
    this.#past = [...this.#past.slice(-20), talk]
    return this.#send(talk, MAIN)
  }

  #send(talk: Talk, source: string): CacheCheckOutcome {
    this.turns += 1
    return this.#watcher.send({ ...requestOf(talk, this.#now, this.#lifetime), source }).outcome
  }
}

function words(tokens: number): string {
  return TEXT.repeat(Math.ceil((tokens * 4) / TEXT.length)).slice(0, tokens * 4)
}

/** A prompt follows an answer. */
function closed(talk: Talk): Talk {
  return responded(talk, [{ type: 'text', text: 'done' }])
}

function cleared(talk: Talk, results: number): Talk {
  const messages = [...talk.flat.frozen, ...talk.flat.tail].flatMap(({ message }) =>
    typeof message.content === 'string' ? [] : message.content.filter(isToolResult),
  )
  const compactedToolIds = messages.slice(0, results).map((block) => block.tool_use_id)
  const metadata = { trigger: 'auto', preTokens: 0, tokensSaved: 0, clearedAttachmentUUIDs: [] }
  return told(talk, {
    type: 'system',
    subtype: 'microcompact_boundary',
    microcompactMetadata: { ...metadata, compactedToolIds },
  })
}

function compacted(talk: Talk): Talk {
  const compactMetadata = { trigger: 'auto', preTokens: 0 }
  const boundary = told(talk, {
    type: 'system',
    subtype: 'compact_boundary',
    compactMetadata,
    logicalParentUuid: talk.last,
    parentUuid: null,
  })
  const message = { role: 'user', content: `summary ${words(500)}` }
  return told(boundary, { type: 'user', isCompactSummary: true, message })
}
