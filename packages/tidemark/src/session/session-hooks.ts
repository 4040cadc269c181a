/** The hooks of an open session: functions of the host joined with commands, and runs of them outside the agent loop. */
import { type HookResult, runHooks, type SessionHooks } from '@tidemark/core/engine/hooks'
import { joinCommandHooks } from '../hooks/command-hooks.ts'
import type { OpenSession, SessionOptions } from './open-session.ts'
import type { TidemarkSettings } from './options.ts'

/** Returns the options with the commands of `hookCommands` added to `hooks`; unchanged if there are none. */
export function withCommandHooks(
  id: string,
  options: SessionOptions,
  settings: TidemarkSettings,
): SessionOptions {
  const { hookCommands, hooks, cwd = process.cwd() } = options
  if (hookCommands === undefined) return options
  const session = { log: settings.logPath(id), cwd, env: settings.options.env ?? process.env }
  return { ...options, hooks: joinCommandHooks(hookCommands, session, hooks) }
}

type HookOf<Point extends keyof SessionHooks> = NonNullable<SessionHooks[Point]>[number]
export type HookInputOf<Point extends keyof SessionHooks> = Omit<
  Parameters<HookOf<Point>['run']>[0],
  'sessionId'
>
export type HookOutputOf<Point extends keyof SessionHooks> = NonNullable<
  Awaited<ReturnType<HookOf<Point>['run']>>
>

/** Hook points that only the host can reach, because it reads memory files and runs subagents. */
export type HostHookPoint = 'instructionsLoaded' | 'subagentStart' | 'subagentStop'

/**
 * Runs the hooks of a point that the agent loop does not run itself, such as `sessionEnd`, `instructionsLoaded` and
 * those of subagents. Their messages and failures are emitted as events. Returns their outputs.
 */
export async function runSessionHooks<Point extends keyof SessionHooks>(
  session: OpenSession,
  point: Point,
  input: HookInputOf<Point>,
  signal?: AbortSignal,
): Promise<readonly HookOutputOf<Point>[]> {
  const hooks = (session.options.hooks?.[point] ?? []) as Parameters<typeof runHooks>[0]
  const { deadlines, policy } = session.settings
  const limits = { deadlines, ...policy.turn.hooks, signal }
  const { emit } = session.listeners
  const outputs: HookOutputOf<Point>[] = []
  for await (const end of runHooks(hooks, { ...input, sessionId: session.id }, limits)) {
    const { name, ...result } = end as HookResult<{ readonly userDisplayMessage?: string }>
    const message = result.ok ? result.output?.userDisplayMessage : result.message
    if (message !== undefined) emit({ type: result.ok ? 'hook-said' : 'hook-failed', hook: name, message })
    if (result.ok && result.output !== undefined) outputs.push(result.output as HookOutputOf<Point>)
  }
  return outputs
}
