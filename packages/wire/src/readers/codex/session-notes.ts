/** What the first lines of a rollout say about its session. */
import { isObject } from '@tidemark/core'
import type { MetaNotes } from '../log-meta.ts'
import type { Fields } from './codex-line.ts'
import type { CodexLog } from './codex-log.ts'

/**
 * The first of these lines is the log's own. A fork has the lines of its forebears behind it, the oldest last,
 * as part of the copy that it begins with; later ones repeat what is known.
 */
export function noteSession(payload: Fields, meta: MetaNotes, log: CodexLog): void {
  const id = payload.id ?? payload.session_id
  if (typeof id !== 'string' || id === '') return
  if (log.tip === null) log.root = id
  if (meta.standing.sessionId !== null) return
  log.sessionId = id
  meta.first('sessionId', id)
  meta.first('cwd', payload.cwd)
  meta.first('version', payload.cli_version)
  meta.time(payload.timestamp)
  meta.first('forkedFrom', payload.forked_from_id)
  const spawn = spawnOf(payload.source)
  meta.first('parentSessionId', payload.parent_thread_id ?? spawn.parent_thread_id)
  meta.first('agent', payload.agent_nickname ?? spawn.agent_nickname)
  if (typeof payload.forked_from_id === 'string') log.root = payload.forked_from_id
}

function spawnOf(source: unknown): Fields {
  const subagent = isObject(source) ? source.subagent : undefined
  const spawn = isObject(subagent) ? subagent.thread_spawn : undefined
  return isObject(spawn) ? spawn : {}
}
