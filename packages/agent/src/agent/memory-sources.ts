/** Memory files of the agent: which ones it reads, and what hooks learn about them. */
import { homedir } from 'node:os'
import { setTimeout } from 'node:timers/promises'
import { memoryFiles, type Session } from 'tidemark'
import { decidePermission, type PermissionContext } from './permissions.ts'
import type { AgentSettings } from './settings.ts'

interface MemorySourcesOptions {
  readonly settings: AgentSettings
  readonly env: Readonly<Record<string, string | undefined>>
  readonly context: PermissionContext
  readonly onLoaded: (file: LoadedMemoryFile) => void
  /** Called once for each memory file that exists but could not or must not be read. */
  readonly onUnread?: (file: { readonly path: string; readonly why: string }) => void
}

/** A memory file as the InstructionsLoaded hooks receive it. */
export interface LoadedMemoryFile {
  readonly filePath: string
  readonly memoryType: 'User' | 'Project' | 'Local'
  readonly loadReason: LoadedMemory['reason']
  readonly parentFilePath?: string
}

type LoadedMemory = Parameters<NonNullable<Parameters<typeof memoryFiles>[0]['onRead']>>[0]['loaded'][number]

/** Describes a memory file for the InstructionsLoaded hooks. */
function describeMemoryFile({ path, importedBy, origin, reason }: LoadedMemory): LoadedMemoryFile {
  const projectType = path.endsWith('.local.md') ? ('Local' as const) : ('Project' as const)
  return {
    filePath: path,
    memoryType: origin === 'user' ? ('User' as const) : projectType,
    loadReason: reason,
    ...(importedBy === null ? {} : { parentFilePath: importedBy }),
  }
}

/**
 * Returns the context sources of memory files. A file is read only where rules let the model read without a question, whatever
 * the permission mode allows. In a trusted folder, the folders above it are included, up to the repository's.
 */
export function createMemorySources({
  settings,
  env,
  context,
  onLoaded,
  onUnread,
}: MemorySourcesOptions): ReturnType<typeof memoryFiles> {
  const { isTrusted = false, memoryExcludes = [] } = settings
  return memoryFiles({
    cwd: context.folder,
    home: env.HOME ?? homedir(),
    excludes: memoryExcludes,
    isTrusted,
    onRead({ loaded, unread }) {
      for (const file of loaded) onLoaded(describeMemoryFile(file))
      for (const file of unread) onUnread?.(file)
    },
    isPermitted: (path, project) => mayReadUnasked(path, project, context),
  })
}

/** Returns true if rules let the agent read a file of a project without a question, whatever the permission mode allows. */
export function mayReadUnasked(path: string, project: string, context: PermissionContext): boolean {
  const { rules } = context
  const allow = [...rules.allow, `Read(${project}/**)`]
  const permissions: PermissionContext = { ...context, mode: 'default', rules: { ...rules, allow } }
  return decidePermission('Read', { kind: 'read', paths: [path] }, permissions).decision === 'allow'
}

/** How long closing a session waits for hooks that still run. */
const HOOK_END_MS = 2_000

/**
 * Returns `onMemoryLoaded`, which runs the InstructionsLoaded hooks for one file after the other, in the order of loading, and
 * `waitForHooks`, which waits a while for them, because closing the session would end them.
 */
export function createMemoryHookRunner(
  findSession: () => Session | null,
  onLoaded: (file: LoadedMemoryFile) => void = () => {},
) {
  let running: Promise<unknown> = Promise.resolve()
  return {
    onMemoryLoaded(file: LoadedMemoryFile): void {
      onLoaded(file)
      // An event of the session reports a hook that fails.
      const session = findSession()
      running = running.then(() => session?.runHooks('instructionsLoaded', file)).catch(() => undefined)
    },
    waitForHooks: () => Promise.race([running, setTimeout(HOOK_END_MS, undefined, { ref: false })]),
  }
}
