/** The options with every default in place: what all sessions of one Tidemark share. */
import { statSync } from 'node:fs'
import {
  type BlobStore,
  type Clock,
  createPolicy,
  type Deadlines,
  HISTORY_TOOL,
  type Ids,
  isObject,
  type Journal,
  type PlacedSection,
  type Policy,
  placeSections,
  readSwitches,
  type Switches,
  TidemarkError,
} from '@tidemark/core'
import { createBlobFolder } from '../blobs/blob-folder.ts'
import { homeOr, tidemarkHome } from '../home/home.ts'
import { sessionPaths } from '../home/session-paths.ts'
import { show } from '../home/show.ts'
import { createFileJournal } from '../journal/file-journal.ts'
import { createDeadlines } from '../system/deadlines.ts'
import { systemClock } from '../system/system-clock.ts'
import { systemIds } from '../system/system-ids.ts'
import { createMemoryBlobs } from '../testing/memory-blobs.ts'
import { createMemoryJournal } from '../testing/memory-journal.ts'
import { checkOptions, type TidemarkOptions } from './options.ts'

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
