/** What `createTidemark` takes, and the check of it: one line that names the option and says what to do. */

import { statSync } from 'node:fs'
import {
  type BlobStore,
  type CallerPrompt,
  type Carrier,
  type Cleanup,
  type Clock,
  type CompactHooks,
  createPolicy,
  type Deadlines,
  type DeepPartial,
  HISTORY_TOOL,
  type HostTools,
  type Ids,
  isObject,
  type Journal,
  type PlacedSection,
  type Policy,
  placeSections,
  readSwitches,
  show,
  type Switches,
  type SystemPrompt,
  TidemarkError,
} from '@tidemark/core'
import type { ModelChoice } from '../models/model-choice.ts'
import { badOption as bad, checkNames } from '../platform/argument-errors.ts'
import { createDeadlines, systemClock, systemIds } from '../platform/node-ports.ts'
import { createBlobFolder } from '../storage/blob-folder.ts'
import { createFileJournal } from '../storage/file-journal.ts'
import { createMemoryBlobs, createMemoryJournal } from '../storage/memory-stores.ts'
import { homeOr, sessionPaths, tidemarkHome } from '../storage/paths.ts'
import type { SessionEvent } from './events.ts'

export interface TidemarkOptions {
  /** As `anthropic('claude-sonnet-5-5')` gives it. */
  readonly model: ModelChoice
  /** The folder for sessions and blobs; `TIDEMARK_HOME`, or one in the user's data directory. */
  readonly home?: string
  /** Keeps everything in memory, and nothing afterwards: for tests. */
  readonly memory?: boolean
  /** Another log than files under `home`. */
  readonly journal?: Journal
  /** Where large tool results are put aside; a folder under `home` unless given. Null: they stay whole. */
  readonly blobs?: BlobStore | null
  /** Figures that should be other than the defaults (docs/policy.md). */
  readonly policy?: DeepPartial<Policy>
  /** Where switches such as `DISABLE_AUTO_COMPACT` are read; `process.env` unless given. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** The system prompt: a text, or sections. */
  readonly system?: SystemPrompt | CallerPrompt
  /** State that is shown from its source again after a compaction; a function where it differs by session. */
  readonly carriers?: Carriers
  readonly hooks?: CompactHooks
  /** What must be forgotten when a conversation is rewritten. */
  readonly cleanups?: readonly Cleanup[]
  /** Who asks; `sdk` unless given. A subagent says `agent:name`. */
  readonly source?: string
  /** A person answers, so that pauses between prompts are long. */
  readonly interactive?: boolean
  /** Nobody watches: after a compaction the work goes on by itself. */
  readonly autonomous?: boolean
  /**
   * Declares a tool, `history` or the name given, by which the model reads what left its view. `run` answers it; in
   * your own loop `session.history(call.input)` does. Large results are put aside only where there is one.
   */
  readonly history?: boolean | string
  /** The model can read files: it is told where the log is. */
  readonly transcript?: boolean
  /** What is known of the host's tools beyond their names: whose results can be had again. */
  readonly hostTools?: HostTools
  /** Another model for summaries. */
  readonly summariser?: ModelChoice
  /** Told everything, of all sessions. */
  readonly onEvent?: (event: SessionEvent, session: string) => void
  readonly clock?: Clock
  readonly ids?: Ids
  readonly deadlines?: Deadlines
}

export type Carriers = readonly Carrier[] | ((session: SessionPlace) => readonly Carrier[])

export interface SessionPlace {
  readonly id: string
  /** The session's log; null where it is no file. */
  readonly log: string | null
}

type Check = (value: unknown) => string | null

const wants =
  (expected: string, accepts: (value: unknown) => boolean): Check =>
  (value) =>
    accepts(value) ? null : expected

const flag = wants('true or false', (value) => typeof value === 'boolean')
const port = (...methods: readonly string[]): Check =>
  wants(`an object with ${methods.join(', ')}`, (value) =>
    methods.every((name) => typeof (value as Record<string, unknown> | null)?.[name] === 'function'),
  )
const choice = wants('a model, as anthropic("claude-sonnet-5-5") gives it', (value) => {
  const given = value as Partial<ModelChoice> | null | undefined
  return typeof given?.id === 'string' && typeof given.connect === 'function'
})
const object = wants('an object', (value) => isObject(value))
const list = (what: string): Check => wants(`a list of ${what}`, (value) => Array.isArray(value))

const CHECKS: Readonly<Record<keyof TidemarkOptions, Check>> = {
  model: choice,
  home: wants('an absolute path', (value) => typeof value === 'string'),
  memory: flag,
  journal: port('read', 'append', 'list', 'release'),
  blobs: (value) => (value === null ? null : port('put', 'get', 'has')(value)),
  policy: object,
  env: object,
  system: wants(
    'a text, a list of texts, or { sections }',
    (value) => typeof value === 'string' || isObject(value) || Array.isArray(value),
  ),
  carriers: wants(
    'a list of carriers, or a function that gives one',
    (value) => Array.isArray(value) || typeof value === 'function',
  ),
  hooks: checkHooks,
  cleanups: list('clean-ups'),
  source: wants('a text such as "sdk" or "agent:review"', (value) => typeof value === 'string'),
  interactive: flag,
  autonomous: flag,
  history: wants(
    'true, false or the name of the tool',
    (value) => typeof value === 'boolean' || (typeof value === 'string' && value !== ''),
  ),
  transcript: flag,
  hostTools: object,
  summariser: choice,
  onEvent: wants('a function', (value) => typeof value === 'function'),
  clock: port('now', 'sleep'),
  ids: port('next'),
  deadlines: port('within'),
}

const HOOKS: readonly (keyof CompactHooks)[] = ['preCompact', 'sessionStart', 'postCompact']

function checkHooks(value: unknown): string | null {
  if (!isObject(value)) return 'an object with preCompact, sessionStart or postCompact'
  checkNames('hooks', value, HOOKS)
  for (const [name, hooks] of Object.entries(value))
    if (hooks !== undefined && !(Array.isArray(hooks) && hooks.every(isHook)))
      throw bad('hooks', `hooks.${name}: expected a list of { name, run(input, signal), timeoutSeconds }.`)
  return null
}

function isHook(hook: unknown): boolean {
  return isObject(hook) && typeof hook.name === 'string' && typeof hook.run === 'function'
}

/** What `open` takes of the same options, each checked in the same way. */
export function checkOwnOptions(who: string, options: unknown, others: readonly string[]): void {
  if (!isObject(options)) throw bad('options', `${who}: expected options, found ${show(options)}.`)
  checkNames(who, options, [...others, ...OWN])
  for (const name of OWN) checkOption(who, name, options[name])
  if (options.system !== undefined) placeSections(options.system as SystemPrompt)
}

const OWN: readonly (keyof TidemarkOptions)[] = [
  'system',
  'model',
  'carriers',
  'hooks',
  'cleanups',
  'source',
  'interactive',
  'autonomous',
  'onEvent',
]

export function checkModel(who: string, model: unknown): void {
  checkOption(who, 'model', model ?? null)
}

/** Throws `bad-option` (or `bad-policy`, `bad-home`) for the first thing that is wrong. */
export function checkOptions(options: TidemarkOptions): void {
  if (!isObject(options)) throw bad('options', 'createTidemark: expected options, with a model at least.')
  if (options.model === undefined)
    throw bad('model', 'createTidemark: no model. Give one, as in { model: anthropic("claude-sonnet-5-5") }.')
  checkNames('createTidemark', options, Object.keys(CHECKS))
  for (const [name, value] of Object.entries(options)) checkOption('createTidemark', name, value)
  if (options.memory === true && (options.home !== undefined || options.journal !== undefined))
    throw bad(
      'memory',
      'createTidemark: memory keeps nothing on disk; leave out home and journal, or memory.',
    )
  createPolicy(options.policy ?? {})
  if (options.system !== undefined) placeSections(options.system)
}

function checkOption(who: string, name: string, value: unknown): void {
  const expected = value === undefined ? null : CHECKS[name as keyof TidemarkOptions](value)
  if (expected === null) return
  throw bad(name, `${who}: ${name} is ${show(value)}; expected ${expected}.`)
}

// The options with every default in place: what all sessions of one Tidemark share.

export interface Settings {
  readonly options: TidemarkOptions
  readonly journal: Journal
  /** Who writes to a session has it to itself until it is let go. */
  readonly locks: boolean
  /** Lets go of what was opened for it. */
  readonly close: () => Promise<void>
  readonly blobs: BlobStore | null
  /** The log of a session; null where it is no file. */
  readonly logOf: (session: string) => string | null
  readonly policy: Policy
  readonly switches: Switches
  readonly notices: readonly string[]
  readonly sections: readonly PlacedSection[]
  /** The name of the history tool; null where there is none. */
  readonly historyTool: string | null
  readonly clock: Clock
  readonly ids: Ids
  readonly deadlines: Deadlines
}

export function settingsOf(options: TidemarkOptions): Settings {
  checkOptions(options)
  const { policy = {}, system, clock = systemClock, history = false } = options
  const { switches, notices } = readSwitches(options.env ?? process.env)
  return {
    options,
    ...storesOf(options),
    policy: createPolicy(policy),
    switches,
    notices: [...notices.map(({ message }) => message), ...options.model.notes],
    sections: system === undefined ? [] : placeSections(system),
    historyTool: history === false ? null : history === true ? HISTORY_TOOL : history,
    clock,
    ids: options.ids ?? systemIds,
    deadlines: options.deadlines ?? createDeadlines(clock),
  }
}

type Stores = Pick<Settings, 'journal' | 'locks' | 'blobs' | 'logOf' | 'close'>

function storesOf(options: TidemarkOptions): Stores {
  const { journal, blobs, memory = false } = options
  if (memory) {
    return {
      journal: createMemoryJournal(),
      locks: true,
      blobs: blobs === undefined ? createMemoryBlobs() : blobs,
      ...NOWHERE,
    }
  }
  const home = homeOf(options)
  const folder = blobs === undefined ? createBlobFolder({ home }) : blobs
  if (journal !== undefined) return { journal, locks: false, blobs: folder, ...NOWHERE }
  const files = createFileJournal({ home })
  return {
    journal: files,
    locks: true,
    blobs: folder,
    logOf: (session) => sessionPaths(home, session).log,
    close: () => files.close(),
  }
}

const NOWHERE: Pick<Stores, 'logOf' | 'close'> = { logOf: () => null, close: async () => {} }

function homeOf({ home, env }: TidemarkOptions): string {
  const found = home === undefined ? tidemarkHome(env ?? process.env) : homeOr(home)
  if (isUsable(found)) return found
  const name = home === undefined && (env ?? process.env).TIDEMARK_HOME ? 'TIDEMARK_HOME' : 'The home'
  const message = `${name} is ${show(found)}, where a file is in the way. Name a folder; it is made where there is none.`
  throw new TidemarkError('bad-home', message, { details: { name, value: found } })
}

/** A folder, or nothing yet. What cannot be looked at is for whoever writes there to tell. */
function isUsable(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch (thrown) {
    return !(isObject(thrown) && thrown.code === 'ENOTDIR')
  }
}
