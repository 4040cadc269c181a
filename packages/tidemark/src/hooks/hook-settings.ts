/**
 * The `hooks` of a settings file: for each event a list of matchers, each with its commands. Checks them, and lists the
 * commands of an event, each command once.
 */
import { HOOK_POINTS, type SessionHooks } from '@tidemark/core/engine/hooks'
import { isObject } from '@tidemark/core/log/json'

export type HookEvent = Capitalize<keyof SessionHooks>

/** A command that runs at an event. */
export interface HookCommandSettings {
  readonly type?: 'command'
  /** A line for the shell or, with `args`, a program. */
  readonly command: string
  /** Arguments of the program, which then runs without a shell. */
  readonly args?: readonly string[]
  /** Seconds after which the command is ended. Default: policy `turn.hooks.timeoutSeconds`. */
  readonly timeout?: number
}

interface HookMatcherSettings {
  /** What the commands are for, such as a tool: `Bash`, `Edit|Write`, `^mcp__`. Default: everything. */
  readonly matcher?: string
  readonly hooks: readonly HookCommandSettings[]
}

/** The value of `hooks` in a settings file. */
export type HookSettings = { readonly [Event in HookEvent]?: readonly HookMatcherSettings[] }

/** Returns the name of a hook point as settings spell it. */
export function toHookEvent(point: keyof SessionHooks): HookEvent {
  return `${point.charAt(0).toUpperCase()}${point.slice(1)}` as HookEvent
}

export const HOOK_EVENTS: readonly HookEvent[] = HOOK_POINTS.map(toHookEvent)

/** Returns what is wrong with the `hooks` of a settings file; null if they can be used. */
export function findHooksProblem(value: unknown): string | null {
  if (!isObject(value)) return 'expected an object of events'
  for (const [event, groups] of Object.entries(value)) {
    if (!HOOK_EVENTS.includes(event as HookEvent))
      return `there is no event ${event}; the events are ${HOOK_EVENTS.join(', ')}`
    if (!Array.isArray(groups)) return `${event}: expected a list of { matcher, hooks }`
    for (const [index, group] of groups.entries()) {
      const problem = findGroupProblem(group)
      if (problem !== null) return `${event}[${index}]: ${problem}`
    }
  }
  return null
}

function findGroupProblem(group: unknown): string | null {
  if (!isObject(group) || !Array.isArray(group.hooks)) return 'expected { matcher, hooks: [{ command }] }'
  const unknown = Object.keys(group).find((name) => name !== 'matcher' && name !== 'hooks')
  if (unknown !== undefined) return `unknown field ${unknown}; known: matcher, hooks`
  const { matcher } = group
  if (matcher !== undefined && (typeof matcher !== 'string' || compileMatcher(matcher) === null))
    return `matcher: expected names such as Edit|Write, or a regular expression, found ${JSON.stringify(matcher)}`
  return group.hooks.map(findCommandProblem).find((problem) => problem !== null) ?? null
}

const COMMAND_FIELDS: readonly string[] = ['type', 'command', 'args', 'timeout']

function findCommandProblem(given: unknown): string | null {
  if (!isObject(given)) return 'expected { "type": "command", "command": "…" }'
  const { type = 'command', command, args = [], timeout = 1 } = given
  if (type !== 'command') return `the type ${JSON.stringify(type)} is not supported; expected "command"`
  const unknown = Object.keys(given).find((name) => !COMMAND_FIELDS.includes(name))
  if (unknown !== undefined) return `unknown field ${unknown}; known: ${COMMAND_FIELDS.join(', ')}`
  const isText = (text: unknown): boolean => typeof text === 'string' && !text.includes('\0')
  if (!isText(command) || String(command).trim() === '') return 'command: expected text'
  if (!Array.isArray(args) || !args.every(isText)) return 'args: expected a list of texts'
  if (typeof timeout !== 'number' || !(timeout > 0)) return 'timeout: expected seconds above 0'
  return null
}

/** Characters of a matcher that is a list of names. With any other character it is a regular expression. */
const NAME_LIST = /^[\w, |-]*$/

/** Returns a function that compares a text with a matcher; null if the matcher is no valid regular expression. */
function compileMatcher(matcher: string): ((subject: string) => boolean) | null {
  if (matcher.trim() === '' || matcher === '*') return () => true
  if (NAME_LIST.test(matcher)) {
    const names = matcher.split(/[|,]/).map((name) => name.trim())
    return (subject) => names.includes(subject)
  }
  try {
    const pattern = new RegExp(matcher)
    return (subject) => pattern.test(subject)
  } catch {
    return null
  }
}

/** A command of an event, with all matchers under which the settings list it. */
export interface HookCommand extends Pick<HookCommandSettings, 'command' | 'args' | 'timeout'> {
  /** Returns true if a matcher of the command accepts the text; always true for null, where the event has no matcher. */
  readonly accepts: (subject: string | null) => boolean
}

/** Lists the commands of an event, in order. Identical commands are one; it gets the longest of their timeouts. */
export function listHookCommands(settings: HookSettings, event: HookEvent): readonly HookCommand[] {
  const commands = new Map<string, HookCommand>()
  for (const { matcher = '', hooks } of settings[event] ?? []) {
    const matches = compileMatcher(matcher) ?? (() => false)
    for (const { command, args, timeout } of hooks) {
      const key = JSON.stringify([command, args])
      const same = commands.get(key)
      const times = [timeout, same?.timeout].filter((seconds) => seconds !== undefined)
      commands.set(key, {
        command,
        ...(args === undefined ? {} : { args }),
        ...(times.length === 0 ? {} : { timeout: Math.max(...times) }),
        accepts: (subject) => subject === null || matches(subject) || same?.accepts(subject) === true,
      })
    }
  }
  return [...commands.values()]
}
