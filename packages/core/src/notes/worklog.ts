/** The worklog: one terse line per step. A step begins with a message of the user, a finished todo item or a commit. */
import { isFailure } from '../facts/command-status.ts'
import type { ToolRun } from '../facts/tool-runs.ts'
import type { NoteGroup } from './fit-notes.ts'
import { cleanNoteText, createNewestList, quoteInline, toNoteLine } from './note-text.ts'

interface Worklog {
  /** Begins a step with a message of the user. */
  beginStep(time: string, text: string): void
  addEdits(names: readonly string[]): void
  /** Adds a call with its result. A commit ends the step. */
  addRun(run: ToolRun, time: string): void
  /** Adds the end of a command whose call was added while it ran. The call that shows the end is added for itself. */
  continueRun(run: ToolRun, time: string): void
  /** Ends the step with something that happened, such as a finished todo item. */
  endStep(event: string, time: string): void
  listSteps(): readonly NoteGroup[]
}

const MOST_STEPS = 200
const REQUEST_CHARACTERS = 60
const MOST_FILES = 4
const MESSAGE_CHARACTERS = 90

const COMMIT_COMMAND = /\bgit\b[^|;&\n]*\bcommit\b/
/** Finds the first line of a commit's message, given in quotation marks or as a here-document. */
const COMMIT_MESSAGE =
  /\s-[a-z]*m[\s=]*(?:"\$\(cat <<-?\s*['"]?\w+['"]?\s*\n\s*([^\n]+)|(["'])([^\n]+?)(?:\2|\n))/

interface Step {
  time: string
  text: string
  readonly files: Set<string>
  calls: number
  commands: number
  failed: number
}

export function createWorklog(): Worklog {
  const lines = createNewestList<string>(MOST_STEPS)
  let step = createStep('', '')

  function endStep(event: string, time: string): void {
    const line = formatStep(step, event)
    if (line !== '') lines.add(line)
    step = createStep(time, '')
  }

  function addCommand({ kind, command, status }: ToolRun, time: string): void {
    // A command that is still running counts when it ends.
    if (kind !== 'run' || command === null || status === 'running') return
    step.commands += 1
    if (isFailure(status)) step.failed += 1
    const message = status === 'ok' ? readCommitMessage(command) : null
    if (message !== null) endStep(`committed ${quoteInline(message, MESSAGE_CHARACTERS)}`, time)
  }

  return {
    beginStep(time, text) {
      endStep('', time)
      step = createStep(time, text)
    },
    addEdits(names) {
      for (const name of names) step.files.add(name)
    },
    addRun(run, time) {
      if (step.time === '') step.time = time
      step.calls += 1
      addCommand(run, time)
    },
    continueRun: addCommand,
    endStep,
    listSteps() {
      const current = formatStep(step, '')
      const all = [...(current === '' ? [] : [current]), ...lines.list()]
      const items = all.map((full) => ({ full, rank: 3 }))
      return [{ title: '', items, isOldestFirst: true, dropped: lines.countDropped() }]
    },
  }
}

function createStep(time: string, text: string): Step {
  return { time, text, files: new Set(), calls: 0, commands: 0, failed: 0 }
}

function readCommitMessage(command: string): string | null {
  if (!COMMIT_COMMAND.test(command)) return null
  const found = COMMIT_MESSAGE.exec(command)
  const message = found?.[1] ?? found?.[3]
  return message === undefined ? null : cleanNoteText(message)
}

function formatStep({ time, text, files, calls, commands, failed }: Step, event: string): string {
  if (text === '' && calls === 0 && event === '') return ''
  const named = [...files].slice(0, MOST_FILES).map((path) => toNoteLine(path))
  const more = files.size > MOST_FILES ? ` and ${files.size - MOST_FILES} more` : ''
  const others = calls - commands
  const done = [
    files.size === 0 ? '' : `changed ${named.join(', ')}${more}`,
    commands === 0 ? '' : `${formatCount(commands, 'command')}${failed === 0 ? '' : ` (${failed} failed)`}`,
    commands > 0 || files.size > 0 || others === 0 ? '' : formatCount(others, 'call'),
    event,
  ]
  const result = done.filter((part) => part !== '').join('; ')
  const asked = text === '' ? '' : `user: ${quoteInline(text, REQUEST_CHARACTERS)}`
  const start = `- ${time === '' ? '' : `${time} `}`
  return `${start}${[asked, result].filter((part) => part !== '').join(' → ')}`
}

function formatCount(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
