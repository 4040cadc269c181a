/** The engine's view of an open session: the host with ports, policy, tools and services, and the context of an operation. */
import type { RetrievalMethods } from '@tidemark/core/clearing/clear-candidates'
import type { DropInClient, ToolRunner, TurnHost } from '@tidemark/core/engine/host'
import type { TurnContext } from '@tidemark/core/engine/session-writer'
import { TidemarkError } from '@tidemark/core/errors'
import { canToolReadFiles } from '@tidemark/core/facts/tool-calls'
import { omitUndefined } from '@tidemark/core/log/json'
import { redactStrings } from '@tidemark/core/text/redact'
import type { ModelChoice } from '../models/model-choice.ts'
import { badOptionError } from '../platform/argument-errors.ts'
import { pauseForEvents } from '../platform/node-ports.ts'
import type { OpenSession } from './open-session.ts'
import { toCallLimits } from './session-limits.ts'
import { createReplyAwaitingLock } from './session-locks.ts'
import { createSessionModel, withTransferredParameters } from './session-model.ts'

/** Returns how the model can read what left its context: with the history tool, or from the log file if a tool reads files. */
function findRetrievalPaths(session: OpenSession): RetrievalMethods {
  const { log, settings, tools } = session
  const hasTranscript = settings.options.transcript ?? tools.definitions.some(canToolReadFiles)
  return {
    historyTool: offersHistoryTool(session) ? settings.historyTool : null,
    transcript: hasTranscript ? log : null,
  }
}

/** Without the option `history`, a tool of the caller with the same name replaces the history tool. */
function offersHistoryTool({ settings, tools, offersHistory }: OpenSession): boolean {
  const { historyTool, isHistoryAutomatic } = settings
  const isTaken = isHistoryAutomatic && tools.definitions.some(({ name }) => name === historyTool)
  return offersHistory && !isTaken
}

/**
 * Creates the context of one engine operation: the session's state, which the operation reads and replaces, and its
 * host, write lock and abort signal.
 */
export function createTurnContext(
  session: OpenSession,
  options: {
    /** Signals that abort the operation; closing the session aborts it as well. Without this option, nothing aborts it. */
    readonly signals?: readonly (AbortSignal | undefined)[]
    /** True if what the operation writes to the log waits until a reply that is being streamed has ended. */
    readonly waitsForReply?: boolean
    readonly maxCalls?: number
  } = {},
): TurnContext {
  return {
    get state() {
      return session.state
    },
    set state(next) {
      session.state = next
    },
    host: { ...createTurnHost(session), ...omitUndefined({ maxCalls: options.maxCalls }) },
    signal: options.signals === undefined ? undefined : anySignal(session, options.signals),
    writeLock:
      options.waitsForReply === true
        ? createReplyAwaitingLock(session.awaited.gate, session.withLock)
        : session.withLock,
    ...(session.prepared === null ? {} : { prepared: session.prepared }),
  }
}

function anySignal({ stop }: OpenSession, signals: readonly (AbortSignal | undefined)[]): AbortSignal {
  return AbortSignal.any([stop.signal, ...checkSignals(signals)])
}

/** Returns the signals that are not undefined. Throws `bad-option` if one is not an AbortSignal. */
export function checkSignals(signals: readonly (AbortSignal | undefined)[]): readonly AbortSignal[] {
  const defined = signals.filter((signal) => signal !== undefined)
  if (defined.every((signal) => signal instanceof AbortSignal)) return defined
  throw badOptionError('signal', 'signal: expected an AbortSignal, as new AbortController().signal.')
}

/**
 * Returns what the engine knows of a client. A client's context is rewritten only when necessary, unless the policy says earlier.
 */
function readLeadingClient(
  { refusal, settings }: OpenSession,
  { history: _, ...client }: NonNullable<OpenSession['client']>,
): DropInClient {
  const waitsUntilFull = settings.policy.dropIn.rewrite === 'when-full'
  const isRefused = waitsUntilFull && refusal?.failure.kind === 'overflow'
  return {
    ...client,
    waitsUntilFull,
    refusedAsTooLong: isRefused ? (refusal.failure.gap ?? {}) : undefined,
  }
}

/**
 * Uses a smaller window until the session is opened again or gets another model. Returns null if the policy does not
 * allow such a small window.
 */
function learnWindow(session: OpenSession, window: number): ReturnType<NonNullable<TurnHost['learnWindow']>> {
  const { model, settings } = session
  const { choice, parameterChanges } = model
  const { capabilities, ...rules } = choice.profile
  const profile = { ...rules, window, capabilities: { ...capabilities, tooLong: 'dropped' as const } }
  const smaller = { ...choice, window, profile }
  try {
    const { scaled, parameters } = createSessionModel(smaller, settings)
    session.model = withTransferredParameters(
      { ...model, choice: smaller, scaled, parameters },
      parameterChanges,
    )
  } catch (thrown) {
    if (!(thrown instanceof TidemarkError)) throw thrown
    return null
  }
  return { profile, compaction: createTurnHost(session).compaction }
}

/**
 * Creates the host for the engine from the present state of the session. After a change of model, tools or client,
 * create a new one.
 */
export function createTurnHost(session: OpenSession): TurnHost {
  const { settings, model, options } = session
  const { choice, parameters, estimator, rules } = model
  const { saveDiff } = settings
  const retrieval = findRetrievalPaths(session)
  return {
    journal: settings.journal,
    model: model.port,
    clock: settings.clock,
    ids: settings.ids,
    pause: pauseForEvents,
    policy: settings.policy,
    profile: choice.profile,
    switches: settings.switches,
    source: options.source ?? 'sdk',
    isInteractive: options.interactive ?? false,
    ...omitUndefined({
      cwd: options.cwd,
      isBedrock: choice.isBedrock,
      entitlement: settings.options.entitlement,
    }),
    ...(session.client === null ? {} : { client: readLeadingClient(session, session.client) }),
    ...(saveDiff === null
      ? {}
      : { keepDiff: (diff: string, { at }: { at: number }) => saveDiff(session.id, diff, at) }),
    pricesOf: choice.priceList,
    learnWindow: (tokens) => learnWindow(session, tokens),
    chance: Math.random,
    sections: session.sections,
    readOfferedPrefix() {
      // The tools may change while a compaction runs in the background, so they are read at each call.
      const { tools, historyTool } = session
      const isOffered = historyTool !== null && offersHistoryTool(session)
      const isClient = session.client !== null
      return {
        tools: isOffered ? [...tools.definitions, historyTool] : tools.definitions,
        model: choice.id,
        parameters,
        keepsToolOrder: isClient,
        keepsBetas: isClient,
      }
    },
    runTool: createToolRunner(session, choice),
    ...omitUndefined({ isParallelTool: session.tools.isParallel, hasTool: session.tools.waitForTool }),
    ...omitUndefined({ canUseTool: options.canUseTool }),
    startBackgroundWork(state, moment) {
      for (const start of session.background) start(session, state, moment)
    },
    ...(session.limits.isInForce ? { limits: toCallLimits(session.limits) } : {}),
    startSource: () => session.startSource,
    noteStarted() {
      session.startSource = null
    },
    compaction: { ...session.compactionHost, estimator, scaled: model.scaled, rules, retrieval },
  }
}

/** Returns the function that runs tools. Telemetry also gets results without the key of the model. */
function createToolRunner({ tools, telemetry }: OpenSession, { hideKey }: ModelChoice): ToolRunner {
  const run = hideKey === undefined ? tools.run : hideKeyInResults(tools.run, hideKey)
  return telemetry?.traceTools(run) ?? run
}

/** Returns a tool runner that removes the key from results and progress texts. */
function hideKeyInResults(run: ToolRunner, hide: NonNullable<ModelChoice['hideKey']>): ToolRunner {
  return async (call, signal, report) => {
    const news = report === undefined ? undefined : (text: string) => report(hide(text))
    try {
      return redactStrings(await run(call, signal, news), hide)
    } catch (thrown) {
      throw thrown instanceof Error ? Object.assign(thrown, { message: hide(thrown.message) }) : thrown
    }
  }
}
