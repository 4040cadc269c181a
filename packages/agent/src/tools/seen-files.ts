/**
 * Remembers which files the model has seen, and which of their texts are still in its context. With the first, Write and Edit notice that a
 * file was never read or has changed; with the second, Read can answer "unchanged".
 */
import { appendFileSync, readFileSync } from 'node:fs'
import { resolveRealPath, resolveToolPath } from './tool-access.ts'

/** What identifies the content of a file: its hash, or size and modification time if it is too large to hash. */
export type FileVersion = string

interface ShownText {
  readonly version: FileVersion
  /** The Read call whose result has the text; null if a prompt of the user attached it. */
  readonly toolUseId: string | null
}

/** What the model has seen of files. Paths are absolute and without symbolic links. */
export interface SeenFiles {
  /** Records that the result of a tool call shows a part of a file. `range` names the part. */
  noteRead(path: string, range: string, shown: ShownText): void
  /** Records that the model has changed the file, so that texts shown before are outdated. */
  noteWritten(path: string, version: FileVersion): void
  /** Returns the version of the file that the model last saw; null if it has not seen the file. */
  findSeenVersion(path: string): FileVersion | null
  /** Returns the call whose result shows this part of this version and is still in the context; null if there is none. */
  findShownText(path: string, range: string, version: FileVersion): ShownText | null
  /**
   * Must be called after a rewrite of the context, as a rewrite cleanup of the engine. Texts that have left the context no longer count as
   * shown. The versions that the model has seen are kept.
   */
  forget(rewritten: ForgottenTexts): void
}

interface ForgottenTexts {
  readonly kind: string
  /** Tool calls whose results are no longer in the context. */
  readonly toolUseIds: readonly string[]
  /** Files whose content is no longer in the context. */
  readonly filePaths: readonly string[]
}

interface KnownFile {
  readonly seen: FileVersion
  /** Texts in the context, keyed by range. */
  readonly shown: ReadonlyMap<string, ShownText>
}

/**
 * Creates a read state. Relative paths that the engine names start from `cwd`. With `store`, the versions that the model
 * has seen are appended to that file, so that a resumed session need not read the same files again.
 */
export function createSeenFiles(cwd: string, store?: string): SeenFiles {
  const files = new Map<string, KnownFile>(store === undefined ? [] : readSeenVersions(store))
  function keepVersion(path: string, version: FileVersion): void {
    if (store === undefined || files.get(path)?.seen === version) return
    try {
      // The line end comes first, so that a line cut by a kill cannot damage the next one.
      appendFileSync(store, `\n${JSON.stringify({ path, version })}`, { mode: 0o600 })
    } catch {
      // Without this line, a resumed session must read the file again before it can change the file.
    }
  }
  function keepShown(path: string, isKept: (shown: ShownText) => boolean): void {
    const file = files.get(path)
    if (file === undefined) return
    files.set(path, { ...file, shown: new Map([...file.shown].filter(([, shown]) => isKept(shown))) })
  }
  return {
    noteRead(path, range, shown) {
      keepVersion(path, shown.version)
      files.set(path, { seen: shown.version, shown: new Map(files.get(path)?.shown).set(range, shown) })
    },
    noteWritten(path, version) {
      keepVersion(path, version)
      files.set(path, { seen: version, shown: new Map() })
    },
    findSeenVersion: (path) => files.get(path)?.seen ?? null,
    findShownText(path, range, version) {
      const shown = files.get(path)?.shown.get(range)
      return shown?.version === version ? shown : null
    },
    forget({ kind, toolUseIds, filePaths }) {
      // Only a clearing names every text that left the context. After any other rewrite, no text counts as still in the context.
      const gone = new Set<string | null>(toolUseIds)
      for (const path of files.keys())
        keepShown(path, ({ toolUseId }) => kind === 'clear' && !gone.has(toolUseId))
      for (const path of filePaths) keepShown(resolveRealPath(resolveToolPath(path, cwd)), () => false)
    },
  }
}

/** Reads the versions that the model saw in earlier runs of the session. A line cut by a kill is skipped. */
function readSeenVersions(store: string): readonly (readonly [string, KnownFile])[] {
  let text: string
  try {
    text = readFileSync(store, 'utf8')
  } catch {
    return []
  }
  return text.split('\n').flatMap((line) => {
    try {
      const { path, version } = JSON.parse(line)
      const isSeen = typeof path === 'string' && typeof version === 'string'
      return isSeen ? [[path, { seen: version, shown: new Map() }] as const] : []
    } catch {
      return []
    }
  })
}
