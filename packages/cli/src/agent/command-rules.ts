/**
 * Shell commands in permission rules: how a command is split into its parts, which patterns fit one, and which patterns
 * are suggested for it.
 */
import { matchesStars } from '@tidemark/core'

interface CommandParts {
  readonly parts: readonly string[]
  /** False if the command has substitutions, redirections or the like, whose effect a prefix does not tell. */
  readonly isPlain: boolean
}

/** Redirections that write to no file: `2>&1` and those to /dev/null. */
const HARMLESS_REDIRECTION = /(?<=^|\s)(?:2>&1|[12&]?>>? ?\/dev\/null)(?=$|[\s;|&)])/g

/**
 * Splits a shell command at `;`, `&&`, `||`, `|`, `&`, line ends, parentheses and backquotes, outside quotes. Whatever
 * may run something else, write somewhere or be read by a shell in another way than here (`$(…)`, backquotes, `<(…)`,
 * `>`, here-documents, `$'…'`, comments) makes the command not plain.
 */
export function splitCommand(given: string): CommandParts {
  const command = given.replaceAll(HARMLESS_REDIRECTION, '')
  const parts: string[] = []
  /** Quotes around the substitutions that are open, the innermost last. */
  const outerQuotes: { readonly end: string; readonly quote: string }[] = []
  let current = ''
  let quote = ''
  let before = ''
  let isPlain = true
  const endPart = (): void => {
    parts.push(current)
    current = ''
  }
  for (let index = 0; index < command.length; index += 1) {
    const character = command[index] ?? ''
    const next = command[index + 1] ?? ''
    if (isReadAgain(character, before, quote)) isPlain = false
    if (quote === "'") {
      if (character === "'") quote = ''
      current += character
    } else if (character === '\\') {
      index += 1
      // The shell removes a backslash with the line end after it.
      if (next === '\n') continue
      current += character + next
    } else if (character === '`' || (character === '(' && (quote === '' || before === '$'))) {
      isPlain = false
      endPart()
      if (character === '`' && outerQuotes.at(-1)?.end === '`') quote = outerQuotes.pop()?.quote ?? ''
      else {
        outerQuotes.push({ end: character === '`' ? '`' : ')', quote })
        quote = ''
      }
    } else if (quote === '"') {
      if (character === '{' && before === '$') isPlain = false
      if (character === '"') quote = ''
      current += character
    } else if (character === '"' || character === "'") {
      if (before === '$') isPlain = false
      quote = character
      current += character
    } else if (character === '#' && /^$|[\s;&|()<>]/.test(before)) {
      isPlain = false
      const end = command.indexOf('\n', index)
      index = (end === -1 ? command.length : end) - 1
    } else if (/[;&|\n]/.test(character)) endPart()
    else if (/[)}{]/.test(character)) {
      isPlain = false
      endPart()
      if (character === ')') quote = outerQuotes.pop()?.quote ?? ''
    } else {
      if (/[<>]/.test(character)) isPlain = false
      current += character
    }
    before = character
  }
  if (quote !== '') isPlain = false
  endPart()
  return { parts: parts.map(trimCommand).filter((part) => part !== ''), isPlain }
}

/**
 * True for `$[…]`, arithmetic in which quotes do not quote, and for a substitution in quotes: some builtins read their
 * arguments again, as in `printf -v 'a[$(command)]'`.
 */
function isReadAgain(character: string, before: string, quote: string): boolean {
  if (character === '[' && before === '$') return true
  return quote === "'" && (character === '`' || (character === '(' && before === '$'))
}

/** Removes what a shell takes for blanks. A space of another alphabet is part of a word. */
export function trimCommand(command: string): string {
  return command.replace(/^[ \t\n]+|[ \t\n]+$/g, '')
}

/** Matches `npm test:*` (begins with these words), `npm run *` (a star for any text) or an exact command. */
export function matchesCommand(pattern: string, command: string): boolean {
  if (pattern.endsWith(':*')) {
    const start = pattern.slice(0, -2)
    return command === start || command.startsWith(`${start} `)
  }
  return matchesStars(pattern, command)
}

/** Words before a command that do not change which command runs: assignments, reserved words and plain launchers. */
const LEADING_WORDS =
  /^(?:(?:[A-Za-z_]\w*\+?=\S*|!|if|then|elif|else|while|until|do|time|command|builtin|exec|env|nohup|sudo) )+/

/**
 * Returns the ways to write a command that rules which ask or deny match: as given, without quotes and backslashes,
 * without the words before it, and without the folder of the program. `A=1 "/bin/rm"  -r x` is also `rm -r x`.
 */
export function listSpellings(part: string): readonly string[] {
  const bare = part
    .replace(/[\\'"]/g, '')
    .replace(/\s+/g, ' ')
    .trim()
  const command = bare.replace(LEADING_WORDS, '')
  return [part, bare, command, command.replace(/^\S*\//, '')]
}

/** More rules than this in one question are not read: the command itself is suggested then. */
const MAX_SUGGESTED = 4

/**
 * Returns patterns that together would allow a command, where `known` are those that already apply: `git diff:*` for
 * each part of a chain that needs one. If a prefix would allow too much, as for a loop, a redirection or a program that
 * runs what it is given, it is the command as it is; none if that would be a pattern for other commands.
 */
export function suggestCommandPatterns(command: string, known: readonly string[]): readonly string[] {
  const exact = trimCommand(command)
  const { parts, isPlain } = splitCommand(command)
  const needed = parts.filter((part) => !known.some((pattern) => matchesCommand(pattern, part)))
  const found = isPlain ? needed.map(suggestPrefix) : [null]
  const prefixes = [...new Set(found.flatMap((prefix) => prefix ?? []))]
  if (!found.includes(null) && prefixes.length > 0 && prefixes.length <= MAX_SUGGESTED) return prefixes
  return exact === '' || exact.includes('*') ? [] : [exact]
}

/** Returns the words with which a part of a command begins, as a pattern; null if they do not say what it does. */
function suggestPrefix(part: string): string | null {
  const [program = '', first = '', second = ''] = part.split(/\s+/)
  const name = program.slice(program.lastIndexOf('/') + 1)
  const isCommand = (word: string): boolean => /^[a-z][\w:.-]*$/.test(word)
  if (SCRIPT_RUNNERS.has(name) && first === 'run' && isCommand(second)) return `${program} run ${second}:*`
  if (!/^[\w./~+@-]+$/.test(program) || SHELL_WORDS.has(name) || LAUNCHERS.test(name)) return null
  if (PROGRAMS_WITH_COMMANDS.has(name))
    return isCommand(first) && !LAUNCHING_COMMANDS.has(first) ? `${program} ${first}:*` : null
  return /^[a-z][\w-]*$/.test(first) ? `${program} ${first}:*` : `${program}:*`
}

const SHELL_WORDS: ReadonlySet<string> = new Set(
  'for while until if then else elif fi do done case esac select function coproc in time'.split(' '),
)

/** Programs that run what they are given, so that a rule that names only them would allow every command. */
const LAUNCHERS =
  /^(?:(?:r?ba|da|z|k|fi|c|tc|a)?sh|env|sudo|doas|su|ssh|xargs|parallel|eval|exec|source|\.|command|builtin|nohup|timeout|nice|ionice|setsid|stdbuf|strace|chroot|flock|unshare|busybox|watch|script|find|[gm]?awk|sed|node(?:js)?|deno|bun|tsx|ts-node|(?:python|pypy|perl|ruby|php|lua)[\d.]*|export|enable|cd|osascript|pwsh|npx|pnpx|bunx|uvx|pipx)$/

const SCRIPT_RUNNERS: ReadonlySet<string> = new Set(['npm', 'pnpm', 'yarn', 'bun', 'deno'])

/** Programs whose first word says what they do: an option before it hides that. */
const PROGRAMS_WITH_COMMANDS: ReadonlySet<string> = new Set(
  'git npm pnpm yarn cargo go docker podman kubectl gh uv pip terraform systemctl make poetry bundle'.split(
    ' ',
  ),
)

/** Their commands that run what they are given: `npm exec rimraf /`, `docker run -v /:/host image sh`, `uv run x.py`. */
const LAUNCHING_COMMANDS: ReadonlySet<string> = new Set(
  'exec x dlx run compose tool debug bisect rebase submodule config filter-branch'.split(' '),
)
