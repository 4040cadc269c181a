/**
 * Shell commands as text: which count as the same command, which only look around, which print a file, and which change
 * known files.
 */
import { toOneLine } from '../text/truncate-text.ts'
import { normalizePath } from './tool-calls.ts'

const LEADING_CD = /\s*cd\s+[^&;|\n]*&&\s*/y
const OUTPUT_LIMIT = /^\|\s*(?:head|tail)\b[^&;\n]*$/

/**
 * Removes leading `cd … &&` and trailing `| head` or `| tail`, so that commands which differ only in these count as the same.
 */
export function normalizeCommand(command: string): string {
  let start = 0
  LEADING_CD.lastIndex = 0
  while (LEADING_CD.test(command)) start = LEADING_CD.lastIndex
  let end = command.trimEnd().length
  for (;;) {
    const pipe = command.lastIndexOf('|', end - 1)
    if (pipe <= start || !OUTPUT_LIMIT.test(command.slice(pipe, end))) break
    end = command.slice(0, pipe).trimEnd().length
  }
  return command.slice(start, end).trim()
}

/** Matches one command of a shell line that only reads: files, logs, the state of a repository, a stream. */
const LOOKING_PART = new RegExp(
  `^(?:${[
    'ls|ll|tree|cat|nl|head|tail|less|wc|find|fd|grep|egrep|rg|ag|sed(?! -i)|stat|file|du|df|pwd|which|echo|printf',
    'sort|uniq|cut|tr|awk|jq|column|diff|cd',
    'git (?:-C \\S+ )?(?:status|log|diff|show|branch(?= *(?:-|$))|blame|ls-files|rev-parse)',
    'gh (?:run|pr|issue) (?:view|list|diff|checks)',
  ].join('|')})(?![\\w.-])`,
)
const QUOTED = /'[^']*'|"(?:\\.|[^"\\])*"/g
/** Redirections that write no file: `2>&1`, `>/dev/null`. */
const STREAMS = /[&\d]?>(?:&\d|\s*\/dev\/null)/g
/** Signs that a command changes something although all its parts only read. */
const CHANGE = />|`|\$\(|\s-(?:delete|exec|execdir)\b/

/**
 * Checks whether every part of a command is known to only read; unknown programs count as changing something. Errors in the
 * output of such a command may be those of another one, as in a log that it prints.
 */
export function isReadOnlyCommand(command: string): boolean {
  const plain = command.replace(QUOTED, '""').replace(STREAMS, '')
  const parts = plain.split(/\|\|?|&&|[;\n]/).map((part) => part.trim())
  return !CHANGE.test(plain) && parts.every((part) => part === '' || LOOKING_PART.test(part))
}

/** Matches commands that are of no use elsewhere: with variables or temporary folders, or that only wait. */
const PASSING_COMMAND = /\$(?:\{|\(|[A-Z_]{2})|\/tmp\/|\/var\/folders\/|\bmktemp\b|^sleep\b[^&;|]*$/

/** Checks whether a command is not worth a place in a summary: it only reads, waits, or uses variables or temporary files. */
export function isReadOnlyOrTemporaryCommand(command: string): boolean {
  return PASSING_COMMAND.test(command) || isReadOnlyCommand(command)
}

/** A longer command is known by its ends and its length, so that the list of commands does not hold whole scripts. */
const KEY_CHARACTERS = 1_000
const SHELL_PREFIX = /^bash -lc /

/** Returns a command on one line, without a leading `bash -lc`. */
export function toSingleLineCommand(command: string): string {
  return command.replace(SHELL_PREFIX, '').replace(/\s+/g, ' ').trim()
}

const SHOWN_CHARACTERS = 120

/** Returns a command as texts show it: on one line, in backquotes, cut to `most` characters. */
export function formatCommand(command: string, most: number = SHOWN_CHARACTERS): string {
  return `\`${toOneLine(toSingleLineCommand(command).replaceAll('`', "'"), most)}\``
}

/** Returns the text by which two calls count as the same command. */
export function toCommandKey(command: string): string {
  const line = toSingleLineCommand(command)
  if (line.length <= KEY_CHARACTERS) return line
  return `${line.slice(0, KEY_CHARACTERS / 2)} ${line.length} ${line.slice(-KEY_CHARACTERS / 2)}`
}

// Commands that change files which are known from earlier calls: rm, mv, and commands of git that take changes back.

/**
 * What a command did to a known file. `removed`; `moved` to another path; `undone`: changes of a named file were taken back;
 * `perhaps-undone`: by a command on the whole tree; `stashed`, `perhaps-stashed`: the same with `git stash`; `returned`:
 * changes came back from the stash; `committed`: a commit may contain the changes, so that naming the file no longer takes
 * them back.
 */
export interface FileChange {
  readonly kind:
    | 'removed'
    | 'moved'
    | 'undone'
    | 'perhaps-undone'
    | 'stashed'
    | 'perhaps-stashed'
    | 'returned'
    | 'committed'
  /** The known path. */
  readonly path: string
  /** The path to which the file was moved; null if it was not. */
  readonly to: string | null
  /** The command that did it. */
  readonly by: string
}

/**
 * Returns what a command did to the files `known`, provided that it succeeded. `cwd`: the folder in which it ran; null if
 * unknown.
 */
export function listChangesToKnownFiles(
  command: string,
  known: Iterable<string>,
  cwd: string | null,
): readonly FileChange[] {
  const commands = listFileCommands(toCommandLines(command), cwd)
  if (commands.length === 0) return []
  const paths = [...known].map((path) => ({ path, whole: normalizePath(path, cwd) }))
  return commands.flatMap(({ kind, folder, targets, to, by }) =>
    paths.flatMap(({ path, whole }): readonly FileChange[] => {
      const target = targets.map((each) => normalizePath(each, folder)).find((each) => covers(each, whole))
      if (target === undefined) return []
      if (kind !== 'moved' || to === null) return [{ kind, path, to: null, by }]
      const goal = normalizePath(to, folder)
      const isFolder =
        targets.length > 1 || to.endsWith('/') || paths.some((other) => other.whole.startsWith(`${goal}/`))
      const place = isFolder ? `${goal}/${target.slice(target.lastIndexOf('/') + 1)}` : goal
      return [{ kind, path, to: `${place}${whole.slice(target.length)}`, by }]
    }),
  )
}

function covers(target: string, path: string): boolean {
  return target === path || target === '' || path.startsWith(`${target}/`)
}

interface FileCommand {
  readonly kind: FileChange['kind']
  readonly folder: string | null
  readonly targets: readonly string[]
  readonly to: string | null
  readonly by: string
}

type FileTargets = Pick<FileCommand, 'kind' | 'targets'> & { readonly to?: string }

function listFileCommands(parts: readonly ShellPart[], cwd: string | null): readonly FileCommand[] {
  let folder = cwd
  return parts.flatMap(({ words, text }): readonly FileCommand[] => {
    const start = words.findIndex((word) => word !== 'sudo' && !/^\w+=/.test(word))
    const [program, ...rest] = start === -1 ? [] : words.slice(start)
    if (program === 'cd') folder = normalizePath(rest[0] ?? '', folder)
    const [own, inFolder] = program === 'git' ? readGitFolder(rest, folder) : [rest, folder]
    const found = program === 'git' ? readGitCommand(own) : readFileCommand(program, rest)
    return found === null ? [] : [{ to: null, ...found, folder: inFolder, by: text }]
  })
}

function readFileCommand(program: string | undefined, rest: readonly string[]): FileTargets | null {
  const given = listOperands(rest)
  if (program === 'rm') return { kind: 'removed', targets: given }
  const to = given.at(-1)
  return program === 'mv' && to !== undefined ? { kind: 'moved', targets: given.slice(0, -1), to } : null
}

function readGitFolder(
  rest: readonly string[],
  folder: string | null,
): readonly [words: readonly string[], folder: string | null] {
  const [option, value = '', ...others] = rest
  return option === '-C' ? [others, normalizePath(value, folder)] : [rest, folder]
}

const WHOLE_TREE = ['.']

function readGitCommand([name, ...rest]: readonly string[]): FileTargets | null {
  const given = listOperands(rest)
  const has = (...options: readonly string[]): boolean => options.some((option) => rest.includes(option))
  switch (name) {
    case 'rm':
    case 'mv':
      return has('--cached', '-n', '--dry-run') ? null : readFileCommand(name, rest)
    case 'commit':
      return { kind: 'committed', targets: WHOLE_TREE }
    case 'restore':
      return has('--staged', '-S') && !has('--worktree', '-W') ? null : { kind: 'undone', targets: given }
    case 'checkout':
      return has('-b', '-B', '--orphan') ? null : { kind: 'undone', targets: given }
    case 'reset':
      return has('--hard', '--merge', '--keep') ? { kind: 'perhaps-undone', targets: WHOLE_TREE } : null
    case 'revert':
      return has('--abort', '--quit') ? null : { kind: 'perhaps-undone', targets: WHOLE_TREE }
    case 'stash':
      return readStash(rest)
    default:
      return null
  }
}

function readStash(rest: readonly string[]): FileTargets | null {
  const [act = 'push'] = rest
  if (act === 'pop' || act === 'apply') return { kind: 'returned', targets: WHOLE_TREE }
  if (!act.startsWith('-') && act !== 'push' && act !== 'save') return null
  const named = rest.includes('--') ? rest.slice(rest.indexOf('--') + 1) : []
  return named.length > 0
    ? { kind: 'stashed', targets: named }
    : { kind: 'perhaps-stashed', targets: WHOLE_TREE }
}

/** Returns the words that are no options; all words after `--`. */
function listOperands(words: readonly string[]): readonly string[] {
  const end = words.indexOf('--')
  const before = end === -1 ? words : words.slice(0, end)
  return [...before.filter((word) => !word.startsWith('-')), ...(end === -1 ? [] : words.slice(end + 1))]
}

// Commands that print files, or parts of them, and nothing else.

/** Lines of a file that a command prints: `from` to `to`, counted from 1; `to` is null for the last line. */
export interface PrintedFileLines {
  readonly path: string
  readonly from: number
  readonly to: number | null
  /** True if each line has its number before it. */
  readonly isNumbered: boolean
  /** The line that the command prints before those of the file; null if there is none. */
  readonly heading: string | null
}

type PrintedLines = Omit<PrintedFileLines, 'path' | 'heading'>

const ALL_LINES: PrintedLines = { from: 1, to: null, isNumbered: false }
/** Matches a word that the shell expands or redirects, so that it does not name one file. */
const EXPANDED = /[<>*?$`~{]/

/**
 * Returns the line ranges of files that are all a command prints: `cat FILE`, `nl -ba FILE`, `head`, `tail -n +N` and `sed -n
 * A,Bp` with a file, also piped into one of the latter. Several files count if it is clear where each begins: after a line
 * that `echo` or `printf` prints, or by line numbers. Empty for any other command. `folder`: where it runs.
 */
export function listPrintedFileLines(command: string, folder: string | null): readonly PrintedFileLines[] {
  const parts = toCommandLines(command.replace(SHELL_PREFIX, '').replace(STREAMS, ''))
  const isMove = ({ words }: ShellPart): boolean => words[0] === 'cd' && words.length === 2
  const work = parts.slice(parts.findIndex((part) => !isMove(part)))
  const place = findFolder(command, folder)
  const files: PrintedFileLines[] = []
  let heading: string | null = null
  let isOpen = false
  for (const part of work) {
    const printed = readPrintCommand(part.words)
    const last = files.at(-1)
    if (part.isPiped) {
      if (last === undefined || !isOpen || printed === null) return []
      if (printed.operands.length > 0 || printed.lines.isNumbered) return []
      files.splice(-1, 1, { ...last, ...narrowLines(last, printed.lines) })
      continue
    }
    isOpen = printed !== null
    const line = printed === null ? readHeading(part) : null
    if (printed === null && (line === null || heading !== null)) return []
    heading = line ?? heading
    if (printed === null) continue
    const [path = '', ...others] = printed.operands
    if (path === '' || others.length > 0 || EXPANDED.test(path)) return []
    const isApart = last === undefined || heading !== null || (last.isNumbered && printed.lines.isNumbered)
    if (!isApart) return []
    files.push({ path: normalizePath(path, place), ...printed.lines, heading })
    heading = null
  }
  return heading === null ? files : []
}

/** Returns the line that `echo TEXT` or `printf TEXT` prints, at most with empty lines before it; null if it is none. */
function readHeading({ words: [program, text = '', ...others] }: ShellPart): string | null {
  if ((program !== 'echo' && program !== 'printf') || others.length > 0 || /[%$`<>]/.test(text)) return null
  const line = (program === 'echo' ? text : text.replaceAll('\\n', '\n').replace(/\n$/, '')).replace(
    /^\n+/,
    '',
  )
  return line.trim() === '' || /[\\\n]/.test(line) ? null : line.trim()
}

/** Returns the folder after all `cd` of a command. */
function findFolder(command: string, folder: string | null): string | null {
  const moves = toCommandLines(command).filter(({ words: [program] }) => program === 'cd')
  return moves.reduce((place: string | null, { words }) => normalizePath(words[1] ?? '', place), folder)
}

function narrowLines({ from, to, isNumbered }: PrintedLines, part: PrintedLines): PrintedLines {
  const ends = [to, part.to === null ? null : from + part.to - 1].filter((end) => end !== null)
  return { from: from + part.from - 1, to: ends.length === 0 ? null : Math.min(...ends), isNumbered }
}

/** Returns which lines a command prints, and its arguments besides options; null if it is no such command. */
function readPrintCommand([program, ...rest]: readonly string[]): {
  readonly lines: PrintedLines
  readonly operands: readonly string[]
} | null {
  const options = rest.filter((word) => word.startsWith('-')).join(' ')
  const operands = rest.filter((word) => !word.startsWith('-'))
  const [value = '', ...others] = operands
  if (program === 'cat' && /^(?:-n)?$/.test(options))
    return { lines: { ...ALL_LINES, isNumbered: options !== '' }, operands }
  if (program === 'nl' && options === '-ba') return { lines: { ...ALL_LINES, isNumbered: true }, operands }
  if (program === 'sed' && options === '-n') {
    const [, from, to = from] = /^(\d+)(?:,(\d+|\$))?p$/.exec(value) ?? []
    if (from === undefined) return null
    return {
      lines: { ...ALL_LINES, from: Number(from), to: to === '$' ? null : Number(to) },
      operands: others,
    }
  }
  const [, count] = /^-n?(\d+)$/.exec(options) ?? []
  if (program === 'head' && count !== undefined)
    return { lines: { ...ALL_LINES, to: Number(count) }, operands }
  if (program === 'head' && options === '-n' && /^\d+$/.test(value))
    return { lines: { ...ALL_LINES, to: Number(value) }, operands: others }
  if (program === 'tail' && options === '-n' && /^\+\d+$/.test(value))
    return { lines: { ...ALL_LINES, from: Number(value) }, operands: others }
  return null
}

interface ShellPart {
  readonly words: readonly string[]
  readonly text: string
  /** True if this command reads the output of the one before it. */
  readonly isPiped: boolean
}

/** The next piece of a shell line: quoted text, an escaped character, an operator, white space, or other characters. */
const SHELL_PIECE = /'([^']*)'|"((?:\\.|[^"\\])*)"|\\([\s\S])|(&&|\|\|?|[;&\n])|(\s+)|([^\s'"\\;&|]+)/g

/**
 * Splits a command into the commands that it runs one after the other. Leaves out what follows a here-document, and
 * what runs only if the command before it fails.
 */
function toCommandLines(command: string): readonly ShellPart[] {
  const parts: ShellPart[] = []
  let words: string[] = []
  let word: string | null = null
  let start = 0
  let isFallback = false
  let isPiped = false
  const endPart = (at: number): void => {
    if (word !== null) words.push(word)
    if (words.length > 0 && !isFallback) parts.push({ words, text: command.slice(start, at).trim(), isPiped })
    words = []
    word = null
  }
  for (const piece of command.matchAll(SHELL_PIECE)) {
    const [, single, double, escaped, operator, blank, plain] = piece
    if (plain?.startsWith('<<') === true) break
    if (operator !== undefined) {
      endPart(piece.index)
      start = piece.index + operator.length
      isFallback = operator === '||'
      isPiped = operator === '|'
    } else if (blank !== undefined) {
      if (word !== null) words.push(word)
      word = null
    } else word = `${word ?? ''}${single ?? double ?? escaped ?? plain ?? ''}`
  }
  endPart(command.length)
  return parts
}
