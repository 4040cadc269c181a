/** The library's door: one Tidemark, any number of sessions. */
import { type OtherSummariser, placeSections, TidemarkError } from '@tidemark/core'
import { checkSessionId } from '../storage/paths.ts'
import { type DeskOptions, openDesk } from './open-session.ts'
import { checkOwnOptions, type Settings, settingsOf, type TidemarkOptions } from './options.ts'
import { type Session, sessionFace } from './session.ts'
import { type FittedModel, fitModel } from './session-model.ts'
import { type GivenTools, toolsetOf } from './tools.ts'

export interface Tidemark {
  /**
   * Opens a session by its id; one that does not exist yet is empty. The same process has it open once at a time.
   *
   * @example const session = await tide.open('fix-login')
   */
  open(id: string, options?: OpenOptions): Promise<Session>
  /** Ids of the sessions there are, in order. */
  sessions(): Promise<readonly string[]>
  /** Closes every session. */
  close(): Promise<void>
}

/** What may differ from session to session; else it is as for all of them. */
export interface OpenOptions extends DeskOptions, GivenTools, Pick<TidemarkOptions, 'system'> {
  readonly model?: TidemarkOptions['model']
}

/**
 * A context engine over a model: its sessions grow as long as they like, and each request is what the model should
 * see next.
 *
 * @example const tide = createTidemark({ model: anthropic('claude-sonnet-5-5'), system: 'You are a coder.' })
 */
export function createTidemark(options: TidemarkOptions): Tidemark {
  const settings = settingsOf(options)
  const fitted = fitModel(options.model, settings)
  const summariser = summariserOf(settings)
  const open = new Map<string, Session | null>()
  return {
    async open(id, own = {}) {
      checkSessionId(id)
      checkOwnOptions('open', own, ['tools', 'runTool'])
      if (open.has(id)) throw alreadyOpen(id)
      open.set(id, null)
      try {
        const session = await openOne(
          { settings, fitted, summariser },
          { id, own, onClose: () => open.delete(id) },
        )
        open.set(id, session)
        return session
      } catch (thrown) {
        open.delete(id)
        throw thrown
      }
    },
    sessions: async () => [...(await settings.journal.list())].sort(),
    async close() {
      await Promise.all([...open.values()].map((session) => session?.close()))
      await settings.close()
    },
  }
}

interface Shared {
  readonly settings: Settings
  readonly fitted: FittedModel
  readonly summariser: OtherSummariser | null
}

interface Opening {
  readonly id: string
  readonly own: OpenOptions
  readonly onClose: () => void
}

async function openOne(
  { settings, fitted, summariser }: Shared,
  { id, own, onClose }: Opening,
): Promise<Session> {
  const { tools, runTool, system, model, onEvent, ...rest } = own
  const desk = await openDesk(id, {
    settings,
    summariser,
    fitted: model === undefined ? fitted : fitModel(model, settings),
    options: { ...defaultsOf(settings), ...rest, onEvent: (event) => heard(event) },
    tools: tools === undefined ? null : toolsetOf({ tools, ...(runTool === undefined ? {} : { runTool }) }),
    sections: system === undefined ? settings.sections : placeSections(system),
  })
  function heard(event: Parameters<NonNullable<DeskOptions['onEvent']>>[0]): void {
    onEvent?.(event)
    settings.options.onEvent?.(event, id)
  }
  if (tools === undefined && runTool !== undefined)
    desk.tools = toolsetOf({ tools: desk.tools.definitions, runTool })
  const { keep } = desk.listeners
  for (const message of settings.notices) keep({ type: 'notice', message })
  if (desk.shared.state.damage.length > 0) keep({ type: 'log-damaged', damage: desk.shared.state.damage })
  return sessionFace(desk, onClose)
}

function defaultsOf({ options }: Settings): DeskOptions {
  const { carriers, hooks, cleanups, source, interactive, autonomous } = options
  return {
    ...(carriers === undefined ? {} : { carriers }),
    ...(hooks === undefined ? {} : { hooks }),
    ...(cleanups === undefined ? {} : { cleanups }),
    ...(source === undefined ? {} : { source }),
    ...(interactive === undefined ? {} : { interactive }),
    ...(autonomous === undefined ? {} : { autonomous }),
  }
}

function summariserOf(settings: Settings): OtherSummariser | null {
  const { summariser: choice } = settings.options
  if (choice === undefined) return null
  const { port, scaled } = fitModel(choice, settings)
  const outputTokens = scaled.known ? scaled.summaryOutput : settings.policy.compact.direct.outputTokens
  const { id: model, profile, window } = choice
  return { port, summariser: { model, profile, window, outputTokens } }
}

function alreadyOpen(id: string): TidemarkError {
  return new TidemarkError(
    'busy',
    `open: the session ${id} is open already. Use that one, or close it first.`,
  )
}
