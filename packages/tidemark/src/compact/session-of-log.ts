/** Opens the session of a log on a journal, with what comes back when it is compacted. */
import { dirname, resolve } from 'node:path'
import type { Journal, TurnEvent } from '@tidemark/core'
import { isSessionId } from '../home/session-id.ts'
import type { ReadLog } from '../reading/read-log.ts'
import { systemClock } from '../system/system-clock.ts'
import { systemIds } from '../system/system-ids.ts'
import type { CompactLogOptions } from './compact-options.ts'
import { logCarriers } from './log-carriers.ts'
import type { LogModel } from './log-model.ts'
import { type LogSession, openLogSession } from './log-session.ts'

interface SessionParts {
  readonly model: LogModel
  readonly journal: Journal
  readonly note: (event: TurnEvent) => void
}

export function sessionOn(
  log: ReadLog,
  options: CompactLogOptions,
  { model, journal, note }: SessionParts,
): Promise<LogSession> {
  const { ledger, signal, onEvent, clock = systemClock, ids = systemIds } = options
  const summariser = options.summariser?.(model.id) ?? null
  const path = resolve(log.path)
  const fromDisk = log.format === 'tidemark' && options.at === undefined
  const transcript = options.transcript === undefined ? path : resolve(options.transcript)
  return openLogSession({
    ...{ journal, id: sessionIdOf(log, transcript), model, summariser, clock, ids, transcript },
    ...(ledger === undefined ? {} : { ledger }),
    ...(signal === undefined ? {} : { signal }),
    carriers: (state) => logCarriers(state, { folder: log.meta.cwd, fromDisk, path }),
    onEvent: (event) => {
      note(event)
      onEvent?.(event)
    },
  })
}

/** A log bears the name of its session; one that cannot keeps the id it has. */
function sessionIdOf({ meta }: ReadLog, path: string): string {
  const name = path.slice(dirname(path).length + 1).replace(/\.jsonl(\.gz)?$/, '')
  return isSessionId(name) ? name : (meta.sessionId ?? 'session')
}
