/**
 * What has to be forgotten when a conversation is rewritten: each part of a host registers its own. One belongs to
 * the main thread or to an agent, and a rewrite of an agent's conversation never touches what is not its own.
 */

export interface Rewritten {
  readonly kind: 'compact' | 'clear' | 'undo'
  readonly source: string
  /** Tool calls whose results left the view: what was "already read" no longer is. */
  readonly toolUseIds: readonly string[]
  /** Files whose content left the view with them. */
  readonly filePaths: readonly string[]
}

export interface Cleanup {
  readonly name: string
  /** `main`, or the source that owns it (`agent:review`). */
  readonly scope: string
  readonly forget: (rewritten: Rewritten) => void
}

export interface CleanupFault {
  readonly name: string
  readonly message: string
}

export const MAIN = 'main'

/** The main thread is a source that begins with `repl_main_thread`, or `sdk`, or none. */
export function isMainThread(source: string): boolean {
  return source === '' || source === 'sdk' || source.startsWith('repl_main_thread')
}

/** Runs those that the rewrite concerns, all of them: one that throws is told and stops none. */
export function runCleanups(cleanups: readonly Cleanup[], rewritten: Rewritten): readonly CleanupFault[] {
  const scope = isMainThread(rewritten.source) ? MAIN : rewritten.source
  return cleanups
    .filter((cleanup) => cleanup.scope === scope)
    .flatMap((cleanup) => {
      try {
        cleanup.forget(rewritten)
        return []
      } catch (thrown) {
        return [{ name: cleanup.name, message: thrown instanceof Error ? thrown.message : String(thrown) }]
      }
    })
}
