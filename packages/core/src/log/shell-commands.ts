/** Shell commands as text: which count as the same command, and which only look around. */

const LEADING_CD = /\s*cd\s+[^&;|\n]*&&\s*/y
const OUTPUT_LIMIT = /^\|\s*(?:head|tail)\b[^&;\n]*$/

/** Removes a leading `cd … &&` and a trailing `| head` or `| tail`, so that commands which differ only in these count as the same. */
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

/** Matches one command of a shell line that only looks: at files, at logs, at the state of a repository, at a stream. */
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
/** What makes a command that looks change something after all. */
const CHANGE = />|`|\$\(|\s-(?:delete|exec|execdir)\b/

/** Checks whether a command only looks around. What it prints may be the log of other failures. */
export function isLookingCommand(command: string): boolean {
  const plain = command.replace(QUOTED, '""').replace(STREAMS, '')
  const parts = plain.split(/\|\|?|&&|[;\n]/).map((part) => part.trim())
  return !CHANGE.test(plain) && parts.every((part) => part === '' || LOOKING_PART.test(part))
}

/** Matches what is of use in one place only: variables, temporary folders, waits. */
const PASSING_COMMAND = /\$(?:\{|\(|[A-Z_]{2})|\/tmp\/|\/var\/folders\/|\bmktemp\b|^sleep\b[^&;|]*$/

/** Checks whether a command says nothing about a project: it only looks around, or works on temporary files. */
export function isPassingCommand(command: string): boolean {
  return PASSING_COMMAND.test(command) || isLookingCommand(command)
}

/** Longer commands are told apart by their ends and their length, so that no list of commands holds scripts. */
const KEY_CHARACTERS = 1_000
const SHELL_PREFIX = /^bash -lc /

/** Returns a command on one line, without the shell that runs it. */
export function toCommandLine(command: string): string {
  return command.replace(SHELL_PREFIX, '').replace(/\s+/g, ' ').trim()
}

/** Returns the text by which two calls count as the same command. */
export function toCommandKey(command: string): string {
  const line = toCommandLine(command)
  if (line.length <= KEY_CHARACTERS) return line
  return `${line.slice(0, KEY_CHARACTERS / 2)} ${line.length} ${line.slice(-KEY_CHARACTERS / 2)}`
}
