/** The options of `createTidemark`: their checks, whose messages name the wrong option, and their defaults. */

import { isAbsolute } from 'node:path'
import { DEFAULT_HISTORY_TOOL_NAME } from '@tidemark/core/clearing/clear-candidates'
import type { HostClearingRules } from '@tidemark/core/clearing/tool-result-index'
import { HOOK_POINTS, type SessionHooks } from '@tidemark/core/engine/hooks'
import type { PermissionCheck, RewriteCleanup } from '@tidemark/core/engine/host'
import type {
  BlobStore,
  Clock,
  Deadlines,
  IdGenerator,
  Journal,
  NotesStore,
} from '@tidemark/core/engine/ports'
import { isObject } from '@tidemark/core/log/json'
import { createPolicy, type PolicyOverrides } from '@tidemark/core/policy/create-policy'
import type { Policy } from '@tidemark/core/policy/policy'
import { formatErrorValue } from '@tidemark/core/policy/policy-fields'
import { readSwitches, type Switches } from '@tidemark/core/policy/switches'
import {
  type CallerPrompt,
  orderPromptSections,
  type PlacedSection,
  type SystemPrompt,
} from '@tidemark/core/request/system-prompt'
import type { ContextSource } from '@tidemark/core/sources/context-source'
import { findHookCommandsProblem, type HookCommands } from '../hooks/command-hooks.ts'
import type { ModelChoice } from '../models/model-choice.ts'
import { badOptionError, checkOptionNames } from '../platform/argument-errors.ts'
import { withCheckedIds, withCheckedTime } from '../platform/checked-ports.ts'
import { createDeadlines, systemClock, systemIds } from '../platform/node-ports.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import type { SessionEvent } from './events.ts'
import { findLimitsProblem, type SessionLimitsOption } from './session-limits.ts'
import { createSessionStores, type SessionStores } from './stores.ts'

export interface TidemarkOptions {
  /** The model of the sessions, as returned by `anthropic('claude-sonnet-5-5')`. */
  readonly model: ModelChoice
  /** The folder for sessions and blobs. Default: `TIDEMARK_HOME`, otherwise a folder in the user's data directory. */
  readonly home?: string
  /** Keeps sessions and blobs in memory and writes nothing to disk; for tests. */
  readonly memory?: boolean
  /** A store for logs that replaces the files under `home`. */
  readonly journal?: Journal
  /** The store for large tool results. Default: a folder under `home`. Null: large results stay in the context. */
  readonly blobs?: BlobStore | null
  /** The store for the notes of sessions. Default: files beside the logs; in memory if `journal` is given. */
  readonly notesStore?: NotesStore
  /** Overrides of the default policy; docs/policy.md lists the fields. */
  readonly policy?: PolicyOverrides
  /** Environment variables for switches such as `DISABLE_AUTO_COMPACT`. Default: `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** The system prompt: text, blocks as the API takes them, or sections. */
  readonly system?: SystemPrompt | CallerPrompt
  /** Context sources, which are read again after a compaction; a function if they differ between sessions. */
  readonly carriers?: ContextSources
  /** Functions that run at certain points of a session, such as before a tool call; docs/library.md lists them. */
  readonly hooks?: SessionHooks
  /**
   * Commands that run at the same points, before the functions, in the format of settings files; docs/hooks.md describes them.
   */
  readonly hookCommands?: HookCommands
  /**
   * Decides whether a tool call may run: `allow`, `deny`, or `ask`, which runs the hooks `permissionRequest`. Default:
   * all calls run.
   */
  readonly canUseTool?: PermissionCheck
  /**
   * Run after a compaction, clearing, undo or move has been appended, so that the host drops caches that depend on the
   * context. Each runs only for its `scope`.
   */
  readonly cleanups?: readonly RewriteCleanup[]
  /** A label for telemetry. Default: `sdk`. Subagents use `agent:name`. */
  readonly source?: string
  /** The agent's working directory, an absolute path. Each record has it, so that `inspect` can show the project. */
  readonly cwd?: string
  /**
   * True if a user can answer questions. Pauses between prompts can then be long, which decides the cache lifetime.
   * Default: false.
   */
  readonly interactive?: boolean
  /** True if no user is watching. After a compaction, the model is instructed to continue without asking. */
  readonly autonomous?: boolean
  /**
   * Declares a tool, named `history` or as given, with which the model reads content that is no longer in its context.
   * `run` answers its calls; in your own loop, `session.history(call.input)` does. Large tool results are stored as
   * blobs only with this tool. Default: declared from the first `run` with tools on, and never in your own loop.
   */
  readonly history?: boolean | string
  /**
   * True if the model can read the log: summaries and placeholders then name its path. Default: true if the log is a
   * file and a tool of the session can read files.
   */
  readonly transcript?: boolean
  /** Facts about the host's tools, such as which results can be obtained again. */
  readonly hostTools?: HostClearingRules
  /** The model that writes summaries. Default: the one named by `compact.direct.model`, else the session's model. */
  readonly summariser?: ModelChoice
  /**
   * How notes of a session are kept, with which automatic compactions need no model call. `model: true`: the session's
   * model updates them beside the conversation, which costs a call, mostly of cached tokens, whenever the conversation
   * has grown. Default: they are kept from the log, free of charge. `notes.enabled` in the policy turns them off.
   */
  readonly notes?: { readonly model?: boolean }
  /**
   * What each session may use at most: calls to the model (`turns`), `tokens`, `dollars`. Everything that is billed counts, also
   * before the session was opened again. Once one is reached, no further call is made, and `run` ends with `limit`. Default:
   * none.
   */
  readonly limits?: SessionLimitsOption
  /** What the account may use: the 1-hour cache lifetime at no extra price, unless it is in overage. Default: neither. */
  readonly entitlement?: { readonly isEntitled: boolean; readonly isOverage: boolean }
  /** Reports sessions elsewhere, as `openTelemetry(…)` of `tidemark/telemetry` does. Default: nothing is reported. */
  readonly telemetry?: Telemetry
  /** Called for every event of every session, with the session's id. */
  readonly onEvent?: (event: SessionEvent, session: string) => void
  readonly clock?: Clock
  readonly ids?: IdGenerator
  readonly deadlines?: Deadlines
}

type ContextSources = readonly ContextSource[] | ((session: SessionLocation) => readonly ContextSource[])

interface SessionLocation {
  readonly id: string
  /** The path of the session's log; null if the log is not a file. */
  readonly log: string | null
}

/** Checks the value of an option. Returns null if the value is accepted; otherwise a description of the expected value. */
type Check = (value: unknown) => string | null

const expect =
  (expected: string, accepts: (value: unknown) => boolean): Check =>
  (value) =>
    accepts(value) ? null : expected

const flag = expect('true or false', (value) => typeof value === 'boolean')
const port = (...methods: readonly string[]): Check =>
  expect(`an object with ${methods.join(', ')}`, (value) =>
    methods.every((name) => typeof (value as Record<string, unknown> | null)?.[name] === 'function'),
  )
const choice = expect('a model, as returned by anthropic("claude-sonnet-5-5")', (value) => {
  const given = value as Partial<ModelChoice> | null | undefined
  return typeof given?.id === 'string' && typeof given.connect === 'function'
})
const object = expect('an object', (value) => isObject(value))

const CHECKS: Readonly<Record<keyof TidemarkOptions, Check>> = {
  model: choice,
  home: expect('an absolute path', (value) => typeof value === 'string'),
  memory: flag,
  journal: port('read', 'append', 'list', 'release'),
  blobs: (value) => (value === null ? null : port('put', 'get', 'has')(value)),
  notesStore: port('read', 'write', 'readOverrides', 'path', 'claim', 'readClaim'),
  policy: object,
  env: object,
  system: expect(
    'text, a list of texts or text blocks, or { sections }',
    (value) => typeof value === 'string' || isObject(value) || Array.isArray(value),
  ),
  carriers: (value) => (typeof value === 'function' ? null : checkContextSources(value)),
  hooks: checkHooks,
  hookCommands: findHookCommandsProblem,
  canUseTool: expect(
    'a function (call, signal) that returns { decision }',
    (value) => typeof value === 'function',
  ),
  cleanups: expect(
    'a list of { name, scope, forget(rewritten) }; scope is "main" or the source of an agent',
    (value) => Array.isArray(value) && value.every(isCleanup),
  ),
  source: expect('text such as "sdk" or "agent:review"', (value) => typeof value === 'string'),
  cwd: expect('an absolute path', (value) => typeof value === 'string' && isAbsolute(value)),
  interactive: flag,
  autonomous: flag,
  history: expect(
    'true, false, or a name for the tool',
    (value) => typeof value === 'boolean' || (typeof value === 'string' && value !== ''),
  ),
  transcript: flag,
  hostTools: checkHostTools,
  summariser: choice,
  notes: checkNotesOption,
  limits: findLimitsProblem,
  entitlement: expect(
    'an object with isEntitled and isOverage, each true or false',
    (value) => isObject(value) && flag(value.isEntitled) === null && flag(value.isOverage) === null,
  ),
  telemetry: expect(
    'what openTelemetry of tidemark/telemetry returns',
    (value) => isObject(value) && typeof value.observeSession === 'function',
  ),
  onEvent: expect('a function', (value) => typeof value === 'function'),
  clock: port('now', 'sleep'),
  ids: port('next'),
  deadlines: port('within'),
}

const checkContextSources = expect(
  'a flat list of context sources, such as [...memoryFiles({ cwd })], or a function that returns one',
  (value) =>
    Array.isArray(value) && value.every((each) => isObject(each) && typeof each.render === 'function'),
)

/**
 * Returns the context sources of a session; calls the option if it is a function. Throws `bad-option` if that returned
 * something else.
 */
export function readContextSources(
  given: ContextSources,
  location: SessionLocation,
): readonly ContextSource[] {
  if (typeof given !== 'function') return given
  const sources = given(location)
  const expected = checkContextSources(sources)
  if (expected === null) return sources
  throw badOptionError(
    'carriers',
    `carriers: the function returned ${formatErrorValue(sources)}; expected ${expected}.`,
  )
}

function checkNotesOption(value: unknown): string | null {
  if (!isObject(value)) return '{ model: true } or { model: false }'
  checkOptionNames('notes', value, ['model'])
  return value.model === undefined || flag(value.model) === null
    ? null
    : '{ model: true } or { model: false }'
}

const HOST_TOOLS: readonly (keyof HostClearingRules)[] = [
  'clearable',
  'readOnly',
  'protected',
  'clearsUnlisted',
]

function checkHostTools(value: unknown): string | null {
  if (!isObject(value)) return `an object with fields of ${HOST_TOOLS.join(', ')}`
  checkOptionNames('hostTools', value, HOST_TOOLS)
  return null
}

/**
 * Checks the `hooks` option. Returns a description of the expected value if the option is not an object. Throws if a
 * hook name is unknown or a list of hooks is wrong.
 */
function checkHooks(value: unknown): string | null {
  if (!isObject(value)) return `an object with ${HOOK_POINTS.join(', ')}`
  checkOptionNames('hooks', value, HOOK_POINTS)
  for (const [name, hooks] of Object.entries(value))
    if (hooks !== undefined && !(Array.isArray(hooks) && hooks.every(isHook)))
      throw badOptionError(
        'hooks',
        `hooks.${name}: expected a list of { name, run(input, signal), timeoutSeconds }.`,
      )
  return null
}

function isHook(hook: unknown): boolean {
  return isObject(hook) && typeof hook.name === 'string' && typeof hook.run === 'function'
}

function isCleanup(cleanup: unknown): boolean {
  return (
    isObject(cleanup) &&
    typeof cleanup.name === 'string' &&
    typeof cleanup.scope === 'string' &&
    typeof cleanup.forget === 'function'
  )
}

/** Checks the options of `open`. Options that `createTidemark` also has are checked in the same way. */
export function checkOpenOptions(options: unknown): void {
  if (!isObject(options))
    throw badOptionError('options', `open: expected options, found ${formatErrorValue(options)}.`)
  checkOptionNames('open', options, ['tools', 'runTool', 'findTool', ...OPEN_OPTIONS])
  for (const name of OPEN_OPTIONS) checkOption('open', name, options[name])
  if (options.system !== undefined) orderPromptSections(options.system as SystemPrompt)
}

const OPEN_OPTIONS: readonly (keyof TidemarkOptions)[] = [
  'system',
  'model',
  'carriers',
  'hooks',
  'hookCommands',
  'canUseTool',
  'cleanups',
  'source',
  'cwd',
  'interactive',
  'autonomous',
  'notes',
  'limits',
  'onEvent',
]

/** Throws `bad-option` if the value is not a model. `caller`: the method that got it, for the message. */
export function checkModel(caller: string, model: unknown): void {
  checkOption(caller, 'model', model ?? null)
}

export function listTidemarkOptionNames(): readonly string[] {
  return Object.keys(CHECKS)
}

/**
 * Checks the options of `createTidemark`, for it or another `caller`. Throws `bad-option` or `bad-policy` for the first problem.
 */
export function checkTidemarkOptions(caller: string, options: TidemarkOptions): void {
  if (!isObject(options))
    throw badOptionError('options', `${caller}: expected options with at least a model.`)
  checkOptionNames(caller, options, listTidemarkOptionNames())
  if (options.model === undefined)
    throw badOptionError(
      'model',
      `${caller}: no model. Give one, as in { model: anthropic("claude-sonnet-5-5") }.`,
    )
  for (const [name, value] of Object.entries(options)) checkOption(caller, name, value)
  if (options.memory === true && (options.home !== undefined || options.journal !== undefined))
    throw badOptionError(
      'memory',
      `${caller}: memory keeps nothing on disk; remove home and journal, or memory.`,
    )
  createPolicy(options.policy ?? {})
  if (options.system !== undefined) orderPromptSections(options.system)
}

function checkOption(caller: string, name: string, value: unknown): void {
  const expected = value === undefined ? null : CHECKS[name as keyof TidemarkOptions](value)
  if (expected === null) return
  throw badOptionError(name, `${caller}: ${name} is ${formatErrorValue(value)}; expected ${expected}.`)
}

/** The options of `createTidemark` with all defaults applied; all its sessions share them. */
export interface TidemarkSettings extends SessionStores {
  readonly options: TidemarkOptions
  readonly policy: Policy
  /** The model that writes summaries; null if the session's own model does. */
  readonly summariser: ModelChoice | null
  readonly switches: Switches
  readonly notices: readonly string[]
  readonly sections: readonly PlacedSection[]
  /** The name of the history tool; null if it is never declared. */
  readonly historyTool: string | null
  /** True if the history tool is declared from the first `run` with tools on. */
  readonly isHistoryAutomatic: boolean
  readonly clock: Clock
  readonly ids: IdGenerator
  readonly deadlines: Deadlines
}

/**
 * Checks the options, then returns them with defaults and with the stores opened. Throws `bad-option`, `bad-policy` or
 * `bad-home`.
 */
export function createTidemarkSettings(options: TidemarkOptions): TidemarkSettings {
  checkTidemarkOptions('createTidemark', options)
  const { system, history = true } = options
  const policy = createPolicy(options.policy ?? {})
  const clock = options.clock === undefined ? systemClock : withCheckedTime(options.clock)
  const { switches, notices } = readSwitches(options.env ?? process.env)
  return {
    options,
    ...createSessionStores(options),
    policy,
    summariser: options.summariser ?? findPolicySummarizer(options.model, policy.compact.direct.model),
    switches,
    notices: [...notices.map(({ message }) => message), ...options.model.notes],
    sections: system === undefined ? [] : orderPromptSections(system),
    historyTool: history === false ? null : history === true ? DEFAULT_HISTORY_TOOL_NAME : history,
    isHistoryAutomatic: options.history === undefined,
    clock,
    ids: options.ids === undefined ? systemIds : withCheckedIds(options.ids),
    deadlines: options.deadlines ?? createDeadlines(clock),
  }
}

/** Returns the model that the policy names for summaries; null if it names none. */
function findPolicySummarizer({ id, sibling }: ModelChoice, name: string | null): ModelChoice | null {
  if (name === null) return null
  if (sibling !== undefined) return sibling(name)
  throw badOptionError(
    'policy',
    `createTidemark: compact.direct.model is ${formatErrorValue(name)}, and the model ${id} has no sibling(id) that creates it. Give the option summariser instead.`,
  )
}
