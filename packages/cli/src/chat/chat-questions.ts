/** Asks the user on the screen: for permissions, with the change of the file, and the questions of the model. */
import { wrapTextWithAnsi } from '@earendil-works/pi-tui'
import type { AgentOptions, AskPermission } from '../agent/agent-options.ts'
import { PLAN_TOOL } from '../agent/permissions.ts'
import { sanitizeLines, sanitizeText } from '../render/text.ts'
import { drawChange } from '../screen/draw-items.ts'
import type { QuestionContent } from '../screen/question.ts'
import type { ChatScreen } from '../screen/screen.ts'
import type { ScreenTheme } from '../screen/theme.ts'
import { describeCallSubject, viewChange } from '../screen/tool-views.ts'
import { toScreenText } from '../screen/transcript.ts'
import type { UserQuestion } from '../tools/agent-environment.ts'

export interface QuestionOptions {
  readonly screen: ChatScreen
  readonly theme: ScreenTheme
  readonly folder: string
  /** Rules that the user has allowed for this session; new ones are added. */
  readonly allowed: string[]
  /** Called when a question is about to be asked. */
  readonly noteWait: () => void
  /** Called when the user breaks off a question. */
  readonly interrupt: () => void
}

type PermissionRequest = Parameters<AskPermission>[0]

export function createScreenQuestions(
  options: QuestionOptions,
): Required<Pick<AgentOptions, 'askPermission' | 'askUser'>> {
  const { screen, allowed, interrupt, noteWait } = options
  const ask = createQueue((question: QuestionContent) => {
    noteWait()
    return screen.ask(question)
  })
  return {
    async askPermission(request) {
      const { suggestion } = request
      // Another call may have been waiting for the same answer.
      if (suggestion !== null && allowed.includes(suggestion)) return { isAllowed: true }
      const answer = await ask(createPermissionQuestion(request, options))
      if (answer === null) {
        interrupt()
        return { isAllowed: false }
      }
      const choice = listPermissionChoices(request)[answer.chosen[0] ?? 0]?.kind
      if (choice === 'always' && suggestion !== null) allowed.push(suggestion)
      if (choice === 'yes' || choice === 'always') return { isAllowed: true }
      return answer.text === '' ? { isAllowed: false } : { isAllowed: false, reason: answer.text }
    },
    async askUser(questions) {
      const answers: string[][] = []
      for (const question of questions) {
        const answer = await ask(createUserQuestion(question))
        const chosen = (answer?.chosen ?? []).flatMap((index) => question.options[index]?.label ?? [])
        answers.push(answer === null ? [] : answer.text === '' ? chosen : [...chosen, answer.text])
      }
      return answers
    },
  }
}

/** Lets one question be asked at a time. */
function createQueue<Question, Answer>(ask: (question: Question) => Promise<Answer>) {
  let last: Promise<unknown> = Promise.resolve()
  return (question: Question): Promise<Answer> => {
    const next = last.then(() => ask(question))
    last = next.catch(() => undefined)
    return next
  }
}

interface PermissionChoice {
  readonly kind: 'yes' | 'always' | 'no'
  readonly label: string
  readonly asksFor?: string
}

function listPermissionChoices({ tool, suggestion }: PermissionRequest): readonly PermissionChoice[] {
  const isPlan = tool === PLAN_TOOL
  return [
    { kind: 'yes', label: isPlan ? 'Approve the plan' : 'Yes' },
    ...(suggestion === null || isPlan
      ? []
      : [{ kind: 'always', label: `Yes, and allow ${sanitizeText(suggestion)} in this session` } as const]),
    { kind: 'no', label: isPlan ? 'Change it:' : 'No. Tell the model why:', asksFor: 'a reason' },
  ]
}

function createPermissionQuestion(
  request: PermissionRequest,
  { folder, theme }: QuestionOptions,
): QuestionContent {
  const { tool, reason } = request
  const input = request.input as Readonly<Record<string, unknown>>
  const isPlan = tool === PLAN_TOOL && typeof input.plan === 'string'
  const change = viewChange(tool, input, { folder, withFile: true })
  const subject = describeCallSubject(tool, input, folder)
  const asker = request.agent === undefined ? '' : `The agent ${sanitizeText(request.agent)}: `
  return {
    title: isPlan ? 'The plan' : `${asker}${sanitizeText(tool)} ${change === null ? '' : subject}`,
    body(width) {
      if (isPlan) return wrapLines(sanitizeLines(String(input.plan)), width)
      const what =
        change === null
          ? wrapLines(formatInput(tool, input), width)
          : drawChange(change, width, { theme, most: Number.POSITIVE_INFINITY })
      return [...what, theme.colors.dim(`  ${sanitizeText(reason)}`)]
    },
    choices: listPermissionChoices(request),
  }
}

/** Shows a command as it will run, with its line ends; other inputs as fields. */
function formatInput(tool: string, input: Readonly<Record<string, unknown>>): string {
  if (tool === 'Bash' && typeof input.command === 'string') return toScreenText(input.command)
  return Object.entries(input)
    .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .map(toScreenText)
    .join('\n')
}

function wrapLines(text: string, width: number): readonly string[] {
  return text
    .split('\n')
    .flatMap((line) => wrapTextWithAnsi(line, Math.max(1, width - 2)))
    .map((line) => `  ${line}`)
}

function createUserQuestion({ question, options, multiSelect = false }: UserQuestion): QuestionContent {
  return {
    title: sanitizeText(question),
    body: () => [],
    isMultiple: multiSelect,
    choices: [
      ...options.map(({ label, description }) => ({
        label: sanitizeText(description === undefined ? label : `${label}: ${description}`),
      })),
      { label: 'Another answer:', asksFor: 'an answer' },
    ],
  }
}
