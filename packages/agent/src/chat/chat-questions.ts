/** Asks the user on the screen: permission questions, with the change of the file, and questions of the model. */

import { escapeForApproval, formatPath, toSafeLine } from '@tidemark/terminal/render/text'
import type { AgentOptions } from '../agent/agent-options.ts'
import { PLAN_TOOL } from '../agent/permissions.ts'
import { addLocalAllowRules } from '../agent/project-rules.ts'
import { drawChange, wrapKeepingSpaces } from '../screen/draw-items.ts'
import { createPermissionView, type PermissionRequest } from '../screen/permission-view.ts'
import type { QuestionContent } from '../screen/question.ts'
import type { ChatScreen } from '../screen/screen.ts'
import type { ScreenTheme, Tone } from '../screen/theme.ts'
import type { UserQuestion } from '../tools/tool-environment.ts'
import type { ChatStartOptions } from './chat-context.ts'

interface QuestionOptions {
  readonly screen: ChatScreen
  readonly theme: ScreenTheme
  readonly start: Pick<ChatStartOptions, 'folder' | 'home' | 'simulation'>
  /** Rules that the user has allowed for this session; new ones are added. */
  readonly allowed: string[]
  /** Adds a line to the transcript. */
  readonly show: (text: string, tone?: Tone) => void
  /** Called when the user aborts a question. */
  readonly interrupt: () => void
}

/**
 * Creates the functions with which an agent asks the user. An aborted question is a refusal; rules that the user allows are kept.
 */
export function createScreenQuestions(
  options: QuestionOptions,
): Required<Pick<AgentOptions, 'askPermission' | 'askUser'>> {
  const { screen, allowed, interrupt } = options
  const ask = async (question: QuestionContent, signal: AbortSignal | undefined) =>
    signal?.aborted === true ? null : await screen.ask(question, signal)
  return {
    async askPermission(request) {
      const { suggestions, signal } = request
      // The user's answer to an earlier question may already allow this call.
      if (suggestions.length > 0 && suggestions.every((rule) => allowed.includes(rule)))
        return { isAllowed: true }
      const answer = await ask(createPermissionQuestion(request, options), signal)
      if (answer === null) {
        // If the agent was stopped, its question has closed by itself, so the turn of the conversation is not interrupted.
        if (signal?.aborted !== true) interrupt()
        return { isAllowed: false }
      }
      const choice = listPermissionChoices(request)[answer.chosen[0] ?? 0]?.kind
      if (choice === 'no' || choice === undefined)
        return answer.text === '' ? { isAllowed: false } : { isAllowed: false, reason: answer.text }
      if (choice !== 'yes') allowed.push(...suggestions)
      if (choice === 'project') await keepRules(suggestions, options)
      return { isAllowed: true }
    },
    async askUser(questions, signal) {
      const answers: string[][] = []
      for (const question of questions) {
        const answer = await ask(createUserQuestion(question), signal)
        const chosen = (answer?.chosen ?? []).flatMap((index) => question.options[index]?.label ?? [])
        answers.push(answer === null ? [] : answer.text === '' ? chosen : [...chosen, answer.text])
      }
      return answers
    },
  }
}

/** Stores rules in the project's settings. If that fails, they are valid for this session only. */
async function keepRules(rules: readonly string[], { start, show }: QuestionOptions): Promise<void> {
  try {
    const path = await addLocalAllowRules(start, rules)
    show(
      `Allowed in this folder from now on: ${rules.map(escapeForApproval).join(', ')} (${formatPath(path)}).`,
    )
  } catch (error) {
    show(`The rule counts in this session only: ${(error as Error).message}`, 'warning')
  }
}

interface PermissionChoice {
  readonly kind: 'yes' | 'session' | 'project' | 'no'
  readonly label: string
  readonly asksFor?: string
}

function listPermissionChoices(request: PermissionRequest): readonly PermissionChoice[] {
  const { tool, suggestions } = request
  if (tool === PLAN_TOOL)
    return [
      { kind: 'yes', label: 'Yes' },
      { kind: 'no', label: 'No. Tell the model what to change:', asksFor: 'a reason' },
    ]
  const rules = describeRules(request)
  return [
    { kind: 'yes', label: 'Yes' },
    // Long rules are not offered, because they would push the command itself off the screen.
    ...(suggestions.length === 0 || rules.length > MAX_RULES_CHARACTERS
      ? []
      : ([
          { kind: 'session', label: `Yes, and do not ask again in this session for ${rules}` },
          { kind: 'project', label: 'Yes, and do not ask again in this folder, also in later sessions' },
        ] as const)),
    { kind: 'no', label: 'No. Tell the model why:', asksFor: 'a reason' },
  ]
}

const MAX_RULES_CHARACTERS = 240

/** Describes what the suggested rules allow: as rules, or in words if the rules would only repeat the question. */
function describeRules({ suggestions, input }: PermissionRequest): string {
  const { command } = input as { readonly command?: unknown }
  if (typeof command === 'string' && suggestions[0] === `Bash(${command.trim()})`)
    return 'exactly this command'
  if (suggestions[0] === 'Edit') return 'edits of files in this folder'
  return suggestions.map(escapeForApproval).join(', ')
}

function createPermissionQuestion(
  request: PermissionRequest,
  { start: { folder }, theme }: QuestionOptions,
): QuestionContent {
  const { title, change, text, reason, warning } = createPermissionView(request, folder)
  const { colors } = theme
  return {
    title,
    body(width) {
      const wrap = (lines: string): readonly string[] =>
        lines
          .split('\n')
          .flatMap((line) => wrapKeepingSpaces(line, Math.max(1, width - 2)).map((row) => `  ${row}`))
      return [
        ...(change === null ? wrap(text) : drawChange(change, width, { theme, isFolded: false })),
        ...(warning === '' ? [] : wrap(warning).map((line) => colors.yellow(line))),
        ...(reason === '' ? [] : wrap(reason).map((line) => colors.dim(line))),
      ]
    },
    choices: listPermissionChoices(request),
    onEscape: 'interrupt',
  }
}

function createUserQuestion({ question, options, multiSelect = false }: UserQuestion): QuestionContent {
  return {
    title: toSafeLine(question),
    body: () => [],
    onEscape: 'skip',
    isMultiple: multiSelect,
    choices: [
      ...options.map(({ label, description }) => ({
        label: toSafeLine(description === undefined ? label : `${label}: ${description}`),
      })),
      { label: 'Another answer:', asksFor: 'an answer' },
    ],
  }
}
