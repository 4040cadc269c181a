/** The work in steps. A step begins with a message of the user, a finished todo item or a commit. */
import { isFailure } from './command-status.ts'
import type { ToolRun } from './tool-runs.ts'

export interface WorkStep {
  readonly time: string
  /** What the user typed, or another agent sent, if that began the step. */
  readonly text: string
  /** Who that was: `user`, or the name of the agent. */
  readonly sender: string
  /** Keys of the files that were changed. */
  readonly files: ReadonlySet<string>
  readonly calls: number
  readonly commands: number
  readonly failed: number
  /** What ended the step: a todo item that was done, or the message of a commit; null if a message of the user did. */
  readonly end: { readonly kind: 'done' | 'committed'; readonly text: string } | null
}

interface Worklog {
  /** Begins a step with a message of the user or of another agent. */
  beginStep(time: string, message: Pick<WorkStep, 'text' | 'sender'>): void
  addEdits(files: readonly string[]): void
  /** Adds a call with its result. A commit ends the step. */
  addRun(run: ToolRun, time: string): void
  /** Adds the end of a command whose call was added while it ran. The call that shows the end is added for itself. */
  continueRun(run: ToolRun, time: string): void
  /** Ends the step with todo items that are done. */
  endStep(done: string, time: string): void
  /** Lists the steps, newest first. */
  list(): readonly WorkStep[]
}

const COMMIT_COMMAND = /\bgit\b[^|;&\n]*\bcommit\b/
/** Finds the first line of a commit's message, given in quotation marks or as a here-document. */
const COMMIT_MESSAGE =
  /\s-[a-z]*m[\s=]*(?:"\$\(cat <<-?\s*['"]?\w+['"]?\s*\n\s*([^\n]+)|(["'])([^\n]+?)(?:\2|\n))/

type OpenStep = { -readonly [Key in keyof WorkStep]: WorkStep[Key] } & { readonly files: Set<string> }

export function createWorklog(clean: (text: string) => string): Worklog {
  const steps: WorkStep[] = []
  let step = createStep('')

  function endStep(end: WorkStep['end'], time: string): void {
    if (hasHappened(step) || end !== null) steps.push({ ...step, end })
    step = createStep(time)
  }

  function addCommand({ kind, command, status }: ToolRun, time: string): void {
    // A command that is still running counts when it ends.
    if (kind !== 'run' || command === null || status === 'running') return
    step.commands += 1
    if (isFailure(status)) step.failed += 1
    const message = status === 'ok' ? readCommitMessage(command) : null
    if (message !== null) endStep({ kind: 'committed', text: clean(message) }, time)
  }

  return {
    beginStep(time, message) {
      endStep(null, time)
      step = createStep(time, message)
    },
    addEdits(files) {
      for (const file of files) step.files.add(file)
    },
    addRun(run, time) {
      if (step.time === '') step.time = time
      step.calls += 1
      addCommand(run, time)
    },
    continueRun: addCommand,
    endStep: (done, time) => endStep({ kind: 'done', text: done }, time),
    list: () => [...steps, ...(hasHappened(step) ? [step] : [])].reverse(),
  }
}

function createStep(time: string, { text, sender } = { text: '', sender: 'user' }): OpenStep {
  return { time, text, sender, files: new Set(), calls: 0, commands: 0, failed: 0, end: null }
}

function hasHappened({ text, calls }: WorkStep): boolean {
  return text !== '' || calls > 0
}

function readCommitMessage(command: string): string | null {
  if (!COMMIT_COMMAND.test(command)) return null
  const found = COMMIT_MESSAGE.exec(command)
  return found?.[1] ?? found?.[3] ?? null
}
