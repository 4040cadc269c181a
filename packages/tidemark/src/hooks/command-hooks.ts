/**
 * Turns commands in settings into hooks. Matching commands of one event run at the same time, each once. A command that
 * fails is reported and changes nothing.
 */
import { HOOK_POINTS, type Hook, type SessionHooks } from '@tidemark/core/engine/hooks'
import { isObject } from '@tidemark/core/log/json'
import { truncateEnd } from '@tidemark/core/text/truncate-text'
import { badOptionError, checkOptionNames } from '../platform/argument-errors.ts'
import { HOOK_EVENT_FORMATS, type HookAnswer, type HookEventFormat, readHookAnswer } from './hook-events.ts'
import {
  findHooksProblem,
  type HookCommand,
  type HookCommandSettings,
  type HookSettings,
  listHookCommands,
  toHookEvent,
} from './hook-settings.ts'
import { runHookCommand } from './run-hook-command.ts'

/** Commands that run at certain points of a session. */
export interface HookCommands {
  /** The commands by event, in the format of `hooks` in a settings file. */
  readonly settings: HookSettings
  /** Environment variables of the commands. Default: those of the engine. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Passed to the commands as `permission_mode`. A function is called before each run. */
  readonly permissionMode?: string | (() => string)
  /** Called before a command runs. Returns null to allow it, or a reason to refuse it, which is reported as its failure. */
  readonly findObjection?: (command: HookCommandSettings) => Promise<string | null>
  /** Called before a command runs. Returns how to confine it, for example in a sandbox. Default: not confined. */
  readonly confine?: () => Promise<HookConfinement>
}

interface HookConfinement {
  /** Returns the program and arguments to start instead of the given ones. */
  wrap(program: string, args: readonly string[]): readonly [program: string, args: readonly string[]]
  /** Called when the command has ended. */
  leave(): Promise<unknown>
}

const OPTIONS: readonly (keyof HookCommands)[] = [
  'settings',
  'env',
  'permissionMode',
  'findObjection',
  'confine',
]

/**
 * Checks the option `hookCommands`. Returns null if it is valid, or what was expected if it is no object with
 * `settings`. Throws `bad-option` for an unknown field and for invalid settings.
 */
export function findHookCommandsProblem(value: unknown): string | null {
  if (!isObject(value) || value.settings === undefined) return `an object with ${OPTIONS.join(', ')}`
  checkOptionNames('hookCommands', value, OPTIONS)
  const problem = findHooksProblem(value.settings)
  if (problem === null) return null
  throw badOptionError('hookCommands', `hookCommands.settings: ${problem}.`)
}

/** What the commands learn about the session. */
interface HookSession {
  /** The path of the log; null if it is not a file. */
  readonly log: string | null
  readonly cwd: string
  readonly env: Readonly<Record<string, string | undefined>>
}

/** Returns the hooks of a session: at each point the commands first, as hooks that run them, then the functions. */
export function joinCommandHooks(
  commands: HookCommands,
  session: HookSession,
  functions: SessionHooks = {},
): SessionHooks {
  const joined: Record<string, readonly Hook<never, unknown>[]> = {}
  for (const point of HOOK_POINTS) {
    const event = toHookEvent(point)
    const listed = listHookCommands(commands.settings, event)
    const names = nameCommands(listed)
    const hooks = listed.map((command, place) =>
      createCommandHook(
        { command, name: names[place] ?? event, event, commands, session },
        HOOK_EVENT_FORMATS[point],
      ),
    )
    const all = [...hooks, ...((functions[point] ?? []) as readonly Hook<never, unknown>[])]
    if (all.length > 0) joined[point] = all
  }
  return joined as SessionHooks
}

const NAME_CHARACTERS = 80

/** Names each command by its first words. Equal names get numbers, because a name must identify one hook. */
function nameCommands(commands: readonly HookCommand[]): readonly string[] {
  const names = commands.map(({ command, args = [] }) =>
    truncateEnd([command, ...args].join(' ').replaceAll(/\s+/g, ' ').trim(), NAME_CHARACTERS),
  )
  return names.map((name, index) => {
    const before = names.slice(0, index).filter((other) => other === name).length
    return before === 0 ? name : `${name} (${before + 1})`
  })
}

interface CommandHookInput {
  readonly command: HookCommand
  readonly name: string
  readonly event: string
  readonly commands: HookCommands
  readonly session: HookSession
}

function createCommandHook(
  { command, name, event, commands, session }: CommandHookInput,
  shape: HookEventFormat<never>,
): Hook<{ readonly sessionId: string }, HookAnswer> {
  const { cwd, log } = session
  const { env = session.env, permissionMode } = commands
  return {
    name,
    isParallel: true,
    ...(command.timeout === undefined ? {} : { timeoutSeconds: command.timeout }),
    async run(input, signal) {
      // The engine gives each point the input that the shape of its event expects.
      const own = input as never
      if (!command.accepts(shape.subject?.(own) ?? null)) return undefined
      const objection = (await commands.findObjection?.(command)) ?? null
      if (objection !== null) throw new Error(objection)
      const mode = typeof permissionMode === 'function' ? permissionMode() : permissionMode
      const confined = await commands.confine?.()
      const end = await runHookCommand({
        ...(confined === undefined ? {} : { wrap: confined.wrap }),
        command: command.command,
        ...(command.args === undefined ? {} : { args: command.args }),
        cwd,
        env: { ...env, CLAUDE_PROJECT_DIR: cwd, TIDEMARK_PROJECT_DIR: cwd },
        input: JSON.stringify({
          session_id: input.sessionId,
          transcript_path: log,
          cwd,
          ...(mode === undefined ? {} : { permission_mode: mode }),
          hook_event_name: event,
          ...shape.fields(own),
        }),
        ...(signal instanceof AbortSignal ? { signal } : {}),
      }).finally(() => confined?.leave())
      return readHookAnswer(event, shape, end)
    },
  }
}
