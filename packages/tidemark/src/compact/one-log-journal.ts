/** The journal of one log of ours, wherever it lies: locked, compared and appended as those in a Tidemark home are. */
import { basename } from 'node:path'
import type { Journal } from '@tidemark/core'
import { nodeFiles } from '../files/node-files.ts'
import { LOG_ENDING } from '../home/session-paths.ts'
import { LogFile } from '../journal/log-file.ts'
import { readLog } from '../journal/read-log.ts'
import { SessionWriter } from '../journal/writer.ts'
import { systemProcesses } from '../system/processes.ts'
import { systemClock } from '../system/system-clock.ts'
import { systemIds } from '../system/system-ids.ts'

const TEN_MINUTES_MS = 600_000

export function createOneLogJournal(path: string): Journal {
  const files = nodeFiles
  const stem = path.endsWith(LOG_ENDING) ? path.slice(0, -LOG_ENDING.length) : path
  const session = basename(stem)
  const log = new LogFile({ files, clock: systemClock, session, path })
  const writer = new SessionWriter(
    {
      ...{ files, clock: systemClock, ids: systemIds, processes: systemProcesses, session },
      program: 'tidemark compact',
      staleLockMs: TEN_MINUTES_MS,
      path: `${stem}.lock`,
      logPath: path,
      prepare: async () => {},
    },
    log,
  )
  return {
    async read(_session, visit, from = 0) {
      const reach = await log.reachFrom(from)
      const state = await readLog({ files, session, path }, visit, reach)
      log.note(state)
      const { exists, position, damage } = state
      return { exists, position, damage }
    },
    append: (_session, after, records) => writer.append(after, records),
    list: async () => [session],
    release: () => writer.release(),
  }
}
