/** Where Claude Code, Codex and Tidemark keep their sessions. */
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { LogFormat } from '@tidemark/wire'
import { type HomeVariables, tidemarkHome } from '../home/home.ts'
import { sessionsFolder } from '../home/session-paths.ts'
import { findLogs } from './find-logs.ts'
import type { FindOptions, FoundLogs } from './found-log.ts'
import { existing } from './walk.ts'

export interface LogPlace {
  readonly format: LogFormat
  readonly folder: string
}

export interface PlaceVariables extends HomeVariables {
  readonly CLAUDE_CONFIG_DIR?: string | undefined
  readonly XDG_CONFIG_HOME?: string | undefined
  readonly CODEX_HOME?: string | undefined
}

/** An empty variable counts as unset. */
export function defaultPlaces(
  variables: PlaceVariables = process.env,
  userHome: string = homedir(),
): readonly LogPlace[] {
  const codex = variables.CODEX_HOME || join(userHome, '.codex')
  return [
    ...claudeFolders(variables, userHome).map((folder) => place('claude-code', join(folder, 'projects'))),
    place('codex', join(codex, 'sessions')),
    place('codex', join(codex, 'archived_sessions')),
    place('tidemark', sessionsFolder(tidemarkHome(variables, userHome))),
  ]
}

/** Some versions keep their settings where the XDG rules say. */
function claudeFolders(variables: PlaceVariables, userHome: string): readonly string[] {
  if (variables.CLAUDE_CONFIG_DIR) return [variables.CLAUDE_CONFIG_DIR]
  const shared = variables.XDG_CONFIG_HOME || join(userHome, '.config')
  return [join(userHome, '.claude'), join(shared, 'claude')]
}

function place(format: LogFormat, folder: string): LogPlace {
  return { format, folder }
}

/** Every session in those places, newest first. A place that is not there has none. */
export async function findDefaultLogs(
  options: FindOptions = {},
  places: readonly LogPlace[] = defaultPlaces(),
): Promise<FoundLogs> {
  return findLogs(await existing(places.map(({ folder }) => folder)), options)
}
