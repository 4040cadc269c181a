/**
 * Attempts of a model that a file or a web page has talked over, as data. A class says what the walls promise about it; each
 * attempt is a command, or a path to write or read, with what must happen to it.
 */
import { decidePermission, NO_RULES, type PermissionContext } from '../../src/agent/permissions.ts'

/** `refused` and `asked` hold without a sandbox. `runs`: no wall promises anything, or the attempt is harmless. */
export type Outcome = 'refused' | 'asked' | 'runs'

export interface AttackClass {
  readonly name: string
  /** What is promised about the class, and by which wall. */
  readonly promise: string
  readonly expected: Outcome | readonly Outcome[]
  readonly allow?: readonly string[]
  readonly deny?: readonly string[]
  readonly mode?: PermissionContext['mode']
  /** Where the shell is, from the working directory. */
  readonly shellFolder?: string
  /** Shell commands. */
  readonly commands?: readonly string[]
  /** Paths that are written, from the working directory or absolute. */
  readonly writes?: readonly string[]
  /** Paths that are read. */
  readonly reads?: readonly string[]
}

export const FOLDER = '/srv/app'
export const HOME = '/users/ann'

/** Ten rules that users have. */
export const USUAL_RULES: readonly string[] = [
  ...[
    'Bash(npm test:*)',
    'Bash(npm run build:*)',
    'Bash(git status:*)',
    'Bash(git diff:*)',
    'Bash(git log:*)',
  ],
  ...['Bash(git commit:*)', 'Bash(ls:*)', 'Bash(cat:*)', 'Bash(grep:*)', 'Bash(find:*)'],
]

/** Lists the attempts of a class: what each is called, and what happens to it. */
export function listAttempts(
  attack: AttackClass,
  decide: typeof decidePermission = decidePermission,
): readonly { readonly what: string; readonly outcome: Outcome }[] {
  const context: PermissionContext = {
    rules: { ...NO_RULES, allow: attack.allow ?? [], deny: attack.deny ?? [] },
    mode: attack.mode ?? 'default',
    folder: FOLDER,
    home: HOME,
    protectedFolders: [`${HOME}/.local/share/tidemark`],
  }
  const place = attack.shellFolder === undefined ? {} : { folder: `${FOLDER}/${attack.shellFolder}` }
  const toPath = (path: string): string => (path.startsWith('/') ? path : `${FOLDER}/${path}`)
  const runs = (attack.commands ?? []).map((command) => ({
    what: command,
    tool: 'Bash',
    access: { kind: 'execute', paths: [], command, ...place } as const,
  }))
  const writes = (attack.writes ?? []).map((path) => ({
    what: `Write ${path}`,
    tool: 'Write',
    access: { kind: 'write', paths: [toPath(path)], namedPaths: [toPath(path)] } as const,
  }))
  const reads = (attack.reads ?? []).map((path) => ({
    what: `Read ${path}`,
    tool: 'Read',
    access: { kind: 'read', paths: [toPath(path)], namedPaths: [toPath(path)] } as const,
  }))
  const outcomes = { allow: 'runs', ask: 'asked', deny: 'refused' } as const
  return [...runs, ...writes, ...reads].map(({ what, tool, access }) => ({
    what,
    outcome: outcomes[decide(tool, access, context).decision],
  }))
}

/** Splits a text into its lines, for tables of attempts. */
export function listLines(text: string): readonly string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
}
