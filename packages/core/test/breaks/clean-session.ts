/**
 * A session in which nothing breaks: turns of every kind, gaps shorter than the lifetime, the engine's own acts
 * announced, calls that fail and are sent again, forks, agents, rewinds. Whatever it does, there is no break in it.
 */
import type { CacheOutcome } from '../../src/breaks/outcome.ts'
import { takeSnapshot } from '../../src/breaks/watch.ts'
import { isToolResult } from '../../src/conversation/block.ts'
import { RULES } from './rules.ts'
import {
  FIVE_MINUTES,
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
import { createWatcher } from './watcher.ts'

export type Step =
  | { readonly do: 'round'; readonly calls: number; readonly size: number; readonly thinking: boolean }
  | { readonly do: 'prompt' | 'delta'; readonly size: number }
  | { readonly do: 'clear'; readonly results: number }
  | { readonly do: 'rewind'; readonly back: number }
  | { readonly do: 'agent'; readonly which: number; readonly size: number }
  | { readonly do: 'compact' | 'fork' | 'fail' }

export interface TimedStep {
  readonly step: Step
  /** As a share of the lifetime; below 1. */
  readonly gap: number
}

export interface CleanSession {
  take(timed: TimedStep): CacheOutcome
  readonly turns: number
}

const MAIN = 'repl_main_thread'

export function createCleanSession(isHour: boolean): CleanSession {
  const watcher = createWatcher()
  const lifetime = isHour ? ONE_HOUR : FIVE_MINUTES
  const agents = new Map<number, { readonly talk: Talk; readonly at: number }>()
  let past: readonly Talk[] = [prompted(SILENCE, 'begin')]
  let now = 0
  let turns = 0

  function send(talk: Talk, source = MAIN): CacheOutcome {
    turns += 1
    const sent = { ...requestOf(talk, now, lifetime), source }
    return watcher.send(sent).outcome
  }
  function goOn(talk: Talk): CacheOutcome {
    past = [...past.slice(-20), talk]
    return send(talk)
  }
  function take({ step, gap }: TimedStep): CacheOutcome {
    const talk = past.at(-1) ?? SILENCE
    if (step.do !== 'agent' && step.do !== 'fork') now += Math.floor(gap * lifetime.seconds * 1000)
    switch (step.do) {
      case 'round':
        return goOn(rounded(talk, step.calls, words(step.size), step.thinking ? words(200) : ''))
      case 'prompt':
        return goOn(prompted(closed(talk), words(step.size)))
      case 'delta':
        return goOn(
          told(talk, {
            type: 'attachment',
            attachment: { type: 'section_delta', content: words(step.size) },
          }),
        )
      case 'clear':
        watcher.announce(MAIN, {
          kind: 'clearing',
          act: `cleared ${step.results} results`,
          freedTokens: 1_000,
        })
        return goOn(cleared(talk, step.results))
      case 'compact':
        watcher.announce(MAIN, { kind: 'compaction' })
        past = []
        return goOn(compacted(talk))
      case 'rewind':
        return rewind(talk, past.at(-1 - step.back) ?? talk)
      case 'fork':
        return send(prompted(talk, 'sum it up'), 'compact')
      case 'fail':
        takeSnapshot(watcher.watch, requestOf(prompted(talk, 'lost'), now, lifetime), RULES.policy)
        return goOn(talk)
      case 'agent':
        return agentStep(step.which, step.size)
    }
  }
  /** Whoever goes back behind a clearing takes it back, or brings it back, and says so. */
  function rewind(from: Talk, to: Talk): CacheOutcome {
    if (from.view.acts.at(-1)?.uuid !== to.view.acts.at(-1)?.uuid) watcher.announce(MAIN, { kind: 'undo' })
    return goOn(prompted({ ...to, ids: `turn${turns}-` }, words(300)))
  }
  /** One that has not been heard of for as long as its cache lives begins anew, and says so. */
  function agentStep(which: number, size: number): CacheOutcome {
    const source = `agent:${which}`
    const known = agents.get(which)
    const isAlive = known !== undefined && now - known.at <= lifetime.seconds * 1000
    if (known !== undefined && !isAlive) watcher.announce(source, { kind: 'restart' })
    const talk = rounded(isAlive ? known.talk : prompted(SILENCE, 'help'), 1, words(size))
    agents.set(which, { talk, at: now })
    return send(talk, source)
  }
  return {
    take,
    get turns() {
      return turns
    },
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
